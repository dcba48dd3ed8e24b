// SchemaLogic: what a set of schemas that must all hold (a goal) means. It resolves references,
// splits choices into alternatives, negates, and merges keywords into rules per JSON type.
// Everything it concludes is exact or too strict, never too lax; what it cannot express it reports.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/grammar/dfa.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/lexeme.h"
#include "engine/grammar/number.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/schema_document.h"

namespace tandem::grammar {

using SchemaPtr = const json::Value*;

// Schemas that must all hold, sorted by address. Empty: anything.
using Goal = std::vector<SchemaPtr>;

// JSON types as bits; a number is an integer or has a fraction.
enum TypeBit : std::uint8_t {
  kNullBit = 1,
  kBoolBit = 2,
  kIntegerBit = 4,
  kFractionBit = 8,
  kStringBit = 16,
  kArrayBit = 32,
  kObjectBit = 64,
  kAllTypes = 127,
};

struct StringRules {
  std::uint32_t min = 0;
  std::uint32_t max = kNoLimit;
  std::vector<DfaPtr> all;   // must be in each
  std::vector<DfaPtr> none;  // must be in none
};

struct CountRules {
  std::uint64_t min = 0;
  std::optional<std::uint64_t> max;
};

// The keywords of one conjunction, merged.
struct Rules {
  std::uint8_t types = kAllTypes;
  std::uint8_t bools = 3;                        // bit 0 false, bit 1 true
  std::optional<std::vector<SchemaPtr>> values;  // enum and const
  NumberRange number;
  StringRules string;
  CountRules items;
  CountRules properties;
  std::vector<std::string> required;
  Goal members;
};

// The values of one part of the keys that a schema does not name.
struct KeyRegion {
  DfaPtr keys;
  Goal goal;
};

class SchemaLogic {
 public:
  explicit SchemaLogic(SchemaDocument* document) : document_(document) {}

  // The goal as alternatives without references or choices; a value satisfies the goal iff it
  // satisfies one of them. ERRORS: kInvalidArgument for a malformed schema, kResourceExhausted for
  // too many alternatives.
  Result<std::vector<Goal>> alternatives(const Goal& goal);

  // Merges one alternative.
  Result<Rules> rules(const Goal& alternative);

  // The goal of array item i, of a named property, and of all other properties.
  Goal item_goal(const Rules& rules, std::size_t index) const;
  std::size_t prefix_size(const Rules& rules) const;
  Result<Goal> property_goal(const Rules& rules, const std::string& key);
  Result<std::vector<KeyRegion>> other_keys(const Rules& rules,
                                            const std::vector<std::string>& named);
  // Named properties in the order of the schema.
  std::vector<std::string> property_names(const Rules& rules) const;

  // The texts that the rules allow, without the length limits; null = any.
  // ERRORS: kResourceExhausted if the automaton would be too large.
  Result<DfaPtr> string_dfa(const StringRules& rules) const;

  // True only if no value satisfies the goal.
  bool provably_empty(const Goal& goal, int depth = 0);

  Result<bool> accepts(const Goal& goal, const json::Value& value);

  // The same for one merged alternative.
  Result<bool> rules_accept(const Rules& rules, const json::Value& value);

  // Reports a keyword that is not enforced (once).
  void report(SchemaPtr schema, std::string_view keyword, std::string reason);

  const std::vector<Unenforced>& reported() const { return unenforced_; }

  static bool is_false(const Goal& goal) {
    return goal.size() == 1 && goal[0]->is_bool() && !goal[0]->get_bool();
  }

 private:
  struct Choice {
    SchemaPtr owner;
    std::vector<SchemaPtr> options;
    bool exclusive;
  };

  struct Branch {
    Goal members;
    Goal pending;
    std::vector<Choice> choices;
    std::set<SchemaPtr> visited;
  };

  Status expand(Branch branch, std::vector<Goal>* out);
  // Takes one pending schema apart; false if it can never hold.
  Result<bool> take(SchemaPtr schema, Branch* branch);
  std::vector<Choice> conditional_choices(SchemaPtr schema);
  Result<std::vector<Choice>> dependency_choices(SchemaPtr schema);
  Result<std::vector<SchemaPtr>> exclusive_options(const Choice& choice, const Branch& branch);
  bool already_visited(SchemaPtr option, const Branch& branch) const;

  // A schema for (a part of) what `schema` refuses; nothing if no part can be expressed.
  std::optional<json::Value> negate(SchemaPtr schema, int depth);
  SchemaPtr negation_of(SchemaPtr schema);
  void negate_keyword(SchemaPtr schema, std::string_view key, const json::Value& value, int depth,
                      json::Array* out, bool* lost);

  Status merge_member(SchemaPtr schema, Rules* rules);
  Status merge_types(SchemaPtr schema, Rules* rules) const;
  Status merge_values(SchemaPtr schema, Rules* rules) const;
  Status merge_numbers(SchemaPtr schema, Rules* rules) const;
  Status merge_strings(SchemaPtr schema, Rules* rules);
  Status merge_counts(SchemaPtr schema, Rules* rules) const;
  Status merge_exclusions(SchemaPtr schema, Rules* rules);
  void report_arrays(SchemaPtr schema, const Rules& rules);
  DfaPtr pattern(SchemaPtr schema, std::string_view keyword, std::string_view text);
  Result<std::optional<DfaPtr>> name_filter(const Rules& rules);
  bool rules_empty(const Rules& rules, int depth);

  SchemaDocument* document_;
  std::vector<Unenforced> unenforced_;
  std::set<std::pair<SchemaPtr, std::string>> reported_;
  std::map<std::string, Result<DfaPtr>, std::less<>> patterns_;
  // Schemas written for a schema are written once, so that goals stay finitely many.
  std::map<SchemaPtr, SchemaPtr> negations_;  // null: not expressible
  std::map<SchemaPtr, std::vector<Choice>> conditionals_;
  std::map<SchemaPtr, std::vector<Choice>> dependencies_;
  std::map<std::pair<SchemaPtr, Goal>, std::vector<SchemaPtr>> exclusives_;
  std::map<Goal, bool> emptiness_;
  SchemaPtr undecided_ = nullptr;  // whose oneOf is being worked out; not read meanwhile
  std::map<SchemaPtr, std::map<Goal, bool>> undecided_emptiness_;
  int quiet_ = 0;  // > 0 while only asking, not compiling
};

// What strict says to keywords that are not enforced. ERRORS: kInvalidArgument naming the first.
Status refuse_unenforced(const std::vector<Unenforced>& all);

// Sorts, drops duplicates and `true`; {false} if any schema is false.
Goal make_goal(std::vector<SchemaPtr> schemas);

}  // namespace tandem::grammar
