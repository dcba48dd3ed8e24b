// Regular expressions of JSON Schema (ECMA-262 syntax, Unicode code points) as automata.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar/dfa.h"
#include "foundation/base/status.h"

namespace tandem::grammar {

enum class RegexMatch {
  kSearch,  // the pattern occurs somewhere in the text, as JSON Schema's `pattern` means it
  kWhole,   // the pattern is the whole text
};

// The texts that match. Lookahead is understood directly after a leading ^.
// ERRORS: kInvalidArgument for bad syntax, \b, backreferences, lookbehind, other lookahead, Unicode
// property classes; kResourceExhausted if the automaton would be too large.
Result<DfaPtr> compile_pattern(std::string_view pattern, RegexMatch match);

// Sorted, disjoint ranges of code points.
using CodePoints = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Sorts and merges; with `negate`, the complement.
CodePoints normalised(CodePoints ranges, bool negate);

}  // namespace tandem::grammar
