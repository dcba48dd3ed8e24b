// Numbers of JSON Schema as automata: bounds, multiples and excluded values are decided digit by
// digit on exact decimals, so that no rounding can let a wrong value through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/dfa.h"
#include "foundation/base/status.h"
#include "foundation/json/json.h"

namespace tandem::grammar {

// An exact decimal: sign, digits of the integer part without leading zeros ("" for 0), digits of
// the fraction without trailing zeros.
struct Decimal {
  bool negative = false;
  std::string integer;
  std::string fraction;

  bool is_zero() const { return integer.empty() && fraction.empty(); }

  bool is_integer() const { return fraction.empty(); }

  bool operator==(const Decimal& other) const {
    return integer == other.integer && fraction == other.fraction &&
           (negative == other.negative || is_zero());
  }

  // Plain notation, "-0.05".
  std::string text() const;
};

// The exact decimal of a JSON number; nothing if it is no number or has more than 400 digits.
std::optional<Decimal> to_decimal(const json::Value& value);

// < 0, 0, > 0 as a is below, equal to or above b.
int compare(const Decimal& a, const Decimal& b);

struct NumberRange {
  bool integer = false;
  std::optional<Decimal> min, max;
  bool min_exclusive = false;
  bool max_exclusive = false;
  std::vector<Decimal> multiples_of;
  std::vector<Decimal> excluded;

  bool plain() const { return !min && !max && multiples_of.empty() && excluded.empty(); }
};

// True if `value` satisfies the range; `known` is false if that cannot be decided here.
bool in_range(const NumberRange& range, const Decimal& value, bool* known);

// The JSON texts of the numbers in the range: plain notation, with exponents only where nothing
// limits the value. ERRORS: kResourceExhausted if the automaton would be too large.
Result<DfaPtr> number_dfa(const NumberRange& range);

}  // namespace tandem::grammar
