// Merging the keywords of one conjunction, and the questions asked of the merged rules.
#include <algorithm>

#include "engine/grammar/formats.h"
#include "engine/grammar/schema_logic.h"

namespace tandem::grammar {
namespace {

constexpr int kMaxEmptinessDepth = 6;
constexpr std::size_t kMaxKeyRegions = 32;

struct TypeName {
  std::string_view name;
  std::uint8_t bits;
};

constexpr TypeName kTypeNames[] = {{"null", kNullBit},
                                   {"boolean", kBoolBit},
                                   {"integer", kIntegerBit},
                                   {"number", kIntegerBit | kFractionBit},
                                   {"string", kStringBit},
                                   {"array", kArrayBit},
                                   {"object", kObjectBit},
                                   {"\x01"
                                    "fraction",
                                    kFractionBit},
                                   {"any", kAllTypes}};

std::uint8_t type_bits(const json::Value& name) {
  for (const TypeName& known : kTypeNames) {
    if (name.is_string() && name.get_string() == known.name) {
      return known.bits;
    }
  }
  return 0;
}

std::uint8_t type_of(const json::Value& value) {
  if (value.is_number()) {
    const std::optional<Decimal> d = to_decimal(value);
    return d && !d->is_integer() ? kFractionBit : kIntegerBit;
  }
  return value.is_null()     ? kNullBit
         : value.is_bool()   ? kBoolBit
         : value.is_string() ? kStringBit
         : value.is_array()  ? kArrayBit
                             : kObjectBit;
}

bool same(const json::Value& a, const json::Value& b) {
  if (a.is_number() && b.is_number()) {
    const std::optional<Decimal> x = to_decimal(a);
    const std::optional<Decimal> y = to_decimal(b);
    return x && y ? *x == *y : a == b;
  }
  if (a.is_array() && b.is_array()) {
    return a.get_array().size() == b.get_array().size() &&
           std::equal(a.get_array().begin(), a.get_array().end(), b.get_array().begin(), same);
  }
  if (a.is_object() && b.is_object()) {
    return a.get_object().size() == b.get_object().size() &&
           std::all_of(a.get_object().begin(), a.get_object().end(), [&](const auto& member) {
             const json::Value* other = json::find(b, member.key());
             return other != nullptr && same(member.value(), *other);
           });
  }
  return a == b;
}

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80;
  }));
}

// Names the keyword whose value is malformed.
Status malformed(std::string_view keyword, const json::Value& value, std::string_view expected) {
  return invalid_argument("'{}' is {}; expected {}", keyword, json::dump(value).substr(0, 60),
                          expected);
}

// A count keyword: a non-negative integer.
Result<std::optional<std::uint64_t>> count_keyword(SchemaPtr schema, std::string_view keyword) {
  const json::Value* value = json::find(*schema, keyword);
  if (value == nullptr) {
    return std::optional<std::uint64_t>();
  }
  const std::optional<Decimal> d = to_decimal(*value);
  if (!d || (d->negative && !d->is_zero()) || !d->is_integer() || d->integer.size() > 15) {
    return malformed(keyword, *value, "a non-negative integer");
  }
  return std::optional<std::uint64_t>(d->integer.empty() ? 0 : std::stoull(d->integer));
}

const json::Value* array_items(SchemaPtr schema) {
  const json::Value* prefix = json::find(*schema, "prefixItems");
  const json::Value* items = json::find(*schema, "items");
  return prefix != nullptr ? prefix : items != nullptr && items->is_array() ? items : nullptr;
}

// The schema of the items after the prefix.
const json::Value* rest_items(SchemaPtr schema) {
  const json::Value* items = json::find(*schema, "items");
  if (items != nullptr && items->is_array()) {
    return json::find(*schema, "additionalItems");
  }
  return items;
}

}  // namespace

Result<Rules> SchemaLogic::rules(const Goal& alternative) {
  Rules out;
  out.members = alternative;
  for (const SchemaPtr schema : alternative) {
    if (schema->is_bool()) {
      out.types = schema->get_bool() ? out.types : 0;
      continue;
    }
    const Status merged = merge_member(schema, &out);
    if (!merged.ok()) {
      return merged.with_context(document_->path_of(schema));
    }
  }
  if ((out.types & kFractionBit) == 0) {
    out.number.integer = true;
  } else if ((out.types & kIntegerBit) == 0) {
    // Numbers that are no integers have no automaton here; leaving them out is safe.
    out.types &= static_cast<std::uint8_t>(~kFractionBit);
  }
  if (out.string.min > out.string.max) {
    out.types &= static_cast<std::uint8_t>(~kStringBit);
  }
  if (out.items.max && out.items.min > *out.items.max) {
    out.types &= static_cast<std::uint8_t>(~kArrayBit);
  }
  if (out.properties.max &&
      std::max<std::uint64_t>(out.properties.min, out.required.size()) > *out.properties.max) {
    out.types &= static_cast<std::uint8_t>(~kObjectBit);
  }
  if (out.bools == 0) {
    out.types &= static_cast<std::uint8_t>(~kBoolBit);
  }
  for (const SchemaPtr schema : alternative) {
    if (!schema->is_bool()) {
      report_arrays(schema, out);
    }
  }
  return out;
}

Status SchemaLogic::merge_member(SchemaPtr schema, Rules* rules) {
  TANDEM_TRY(merge_types(schema, rules));
  TANDEM_TRY(merge_values(schema, rules));
  TANDEM_TRY(merge_numbers(schema, rules));
  TANDEM_TRY(merge_strings(schema, rules));
  TANDEM_TRY(merge_counts(schema, rules));
  TANDEM_TRY(merge_exclusions(schema, rules));
  for (const std::string_view word : {"properties", "patternProperties"}) {
    const json::Value* value = json::find(*schema, word);
    if (value != nullptr && !value->is_object()) {
      return malformed(word, *value, "an object");
    }
  }
  const json::Value* required = json::find(*schema, "required");
  if (required != nullptr && !required->is_bool()) {  // draft 3 has a boolean there
    if (!required->is_array()) {
      return malformed("required", *required, "an array of names");
    }
    for (const json::Value& name : required->get_array()) {
      if (!name.is_string()) {
        return malformed("required", name, "a name");
      }
      std::string key(name.get_string());
      if (std::find(rules->required.begin(), rules->required.end(), key) == rules->required.end()) {
        rules->required.push_back(std::move(key));
      }
    }
  }
  return ok_status();
}

Status SchemaLogic::merge_types(SchemaPtr schema, Rules* rules) const {
  const json::Value* type = json::find(*schema, "type");
  if (type == nullptr) {
    return ok_status();
  }
  std::uint8_t bits = 0;
  for (const json::Value& name : type->is_array() ? type->get_array() : json::Array{*type}) {
    const std::uint8_t one = type_bits(name);
    if (one == 0) {
      return malformed("type", name, "the name of a JSON type");
    }
    bits |= one;
  }
  rules->types &= bits;
  return ok_status();
}

Status SchemaLogic::merge_values(SchemaPtr schema, Rules* rules) const {
  std::vector<std::vector<SchemaPtr>> lists;
  if (const json::Value* constant = json::find(*schema, "const")) {
    lists.push_back({constant});
  }
  if (const json::Value* values = json::find(*schema, "enum")) {
    if (!values->is_array()) {
      return malformed("enum", *values, "an array");
    }
    lists.emplace_back();
    for (const json::Value& value : values->get_array()) {
      lists.back().push_back(&value);
    }
  }
  for (std::vector<SchemaPtr>& list : lists) {
    if (!rules->values) {
      rules->values = std::move(list);
      continue;
    }
    std::vector<SchemaPtr> both;
    for (const SchemaPtr value : *rules->values) {
      if (std::any_of(list.begin(), list.end(), [&](SchemaPtr v) { return same(*v, *value); })) {
        both.push_back(value);
      }
    }
    rules->values = std::move(both);
  }
  return ok_status();
}

Status SchemaLogic::merge_numbers(SchemaPtr schema, Rules* rules) const {
  NumberRange& range = rules->number;
  const auto bound = [&](std::string_view keyword, bool lower) -> Status {
    const json::Value* value = json::find(*schema, keyword);
    const bool exclusive_word = keyword[0] == 'e';
    if (value == nullptr || (exclusive_word && value->is_bool())) {
      return ok_status();
    }
    const std::optional<Decimal> limit = to_decimal(*value);
    if (!limit) {
      return malformed(keyword, *value, "a number");
    }
    const json::Value* flag = json::find(*schema, lower ? "exclusiveMinimum" : "exclusiveMaximum");
    const bool open = exclusive_word || (flag != nullptr && flag->is_bool() && flag->get_bool());
    std::optional<Decimal>& current = lower ? range.min : range.max;
    bool& current_open = lower ? range.min_exclusive : range.max_exclusive;
    const int order = current ? compare(*limit, *current) : (lower ? 1 : -1);
    if (order == 0) {
      current_open |= open;
    } else if ((order > 0) == lower) {
      current = limit;
      current_open = open;
    }
    return ok_status();
  };
  TANDEM_TRY(bound("minimum", true));
  TANDEM_TRY(bound("exclusiveMinimum", true));
  TANDEM_TRY(bound("maximum", false));
  TANDEM_TRY(bound("exclusiveMaximum", false));
  if (const json::Value* multiple = json::find(*schema, "multipleOf")) {
    const std::optional<Decimal> d = to_decimal(*multiple);
    if (!d || d->negative || d->is_zero()) {
      return malformed("multipleOf", *multiple, "a positive number");
    }
    range.multiples_of.push_back(*d);
  }
  return ok_status();
}

Status SchemaLogic::merge_strings(SchemaPtr schema, Rules* rules) {
  TANDEM_ASSIGN(const std::optional<std::uint64_t> min, count_keyword(schema, "minLength"));
  TANDEM_ASSIGN(const std::optional<std::uint64_t> max, count_keyword(schema, "maxLength"));
  constexpr std::uint64_t kLongest = kNoLimit - 1;
  if (min) {
    rules->string.min =
        std::max(rules->string.min, static_cast<std::uint32_t>(std::min(*min, kLongest)));
  }
  if (max && *max < kLongest) {
    rules->string.max = std::min(rules->string.max, static_cast<std::uint32_t>(*max));
  }
  const bool strings = (rules->types & kStringBit) != 0;
  const auto text = [&](std::string_view keyword) -> const json::Value* {
    const json::Value* value = json::find(*schema, keyword);
    return strings && value != nullptr && value->is_string() ? value : nullptr;
  };
  for (const bool negated : {false, true}) {
    std::vector<DfaPtr>& out = negated ? rules->string.none : rules->string.all;
    if (const json::Value* value =
            text(negated ? internal_keyword::kNotPattern : std::string_view("pattern"))) {
      if (DfaPtr dfa = pattern(schema, "pattern", std::string_view(value->get_string()))) {
        out.push_back(std::move(dfa));
      }
    }
    if (const json::Value* value =
            text(negated ? internal_keyword::kNotFormat : std::string_view("format"))) {
      const std::string_view name = value->get_string();
      const FormatKind kind = format_kind(name);
      if (kind == FormatKind::kEnforced) {
        out.push_back(format_dfa(name));
      } else if (kind == FormatKind::kUnenforced) {
        report(schema, "format", "the format " + std::string(name) + " has no automaton");
      } else if (negated) {
        rules->types &= static_cast<std::uint8_t>(~kStringBit);
      }
    }
  }
  return ok_status();
}

Status SchemaLogic::merge_counts(SchemaPtr schema, Rules* rules) const {
  const auto merge = [&](std::string_view low, std::string_view high, CountRules* out) -> Status {
    TANDEM_ASSIGN(const std::optional<std::uint64_t> min, count_keyword(schema, low));
    TANDEM_ASSIGN(const std::optional<std::uint64_t> max, count_keyword(schema, high));
    out->min = std::max(out->min, min.value_or(0));
    if (max) {
      out->max = std::min(out->max.value_or(*max), *max);
    }
    return ok_status();
  };
  TANDEM_TRY(merge("minItems", "maxItems", &rules->items));
  return merge("minProperties", "maxProperties", &rules->properties);
}

Status SchemaLogic::merge_exclusions(SchemaPtr schema, Rules* rules) {
  const json::Value* values = json::find(*schema, internal_keyword::kNotEnum);
  if (values == nullptr) {
    return ok_status();
  }
  std::vector<std::string> texts;
  for (const json::Value& value : values->get_array()) {
    if (value.is_string()) {
      texts.emplace_back(value.get_string());
    } else if (value.is_bool()) {
      rules->bools &= static_cast<std::uint8_t>(value.get_bool() ? 1 : 2);
    } else if (value.is_null()) {
      rules->types &= static_cast<std::uint8_t>(~kNullBit);
    } else if (const std::optional<Decimal> d = to_decimal(value)) {
      rules->number.excluded.push_back(*d);
    }
  }
  if (!texts.empty()) {
    rules->string.none.push_back(std::make_shared<const Dfa>(Dfa::literals(texts)));
  }
  return ok_status();
}

void SchemaLogic::report_arrays(SchemaPtr schema, const Rules& rules) {
  const auto has = [&](std::string_view keyword) {
    const json::Value* value = json::find(*schema, keyword);
    return value != nullptr && !(value->is_bool() && !value->get_bool());
  };
  const auto may_be = [&](TypeBit type) {
    return (rules.types & type) != 0 &&
           (!rules.values || std::any_of(rules.values->begin(), rules.values->end(),
                                         [&](SchemaPtr v) { return type_of(*v) == type; }));
  };
  if (may_be(kArrayBit)) {
    if (has("uniqueItems") && rules.items.max.value_or(2) > 1) {
      report(schema, "uniqueItems", "an automaton does not remember earlier items");
    }
    if (json::find(*schema, "contains") != nullptr) {
      report(schema, "contains", "it is not enforced");
    }
    if (json::find(*schema, "unevaluatedItems") != nullptr) {
      report(schema, "unevaluatedItems", "it is not enforced");
    }
  }
  if (may_be(kObjectBit) && json::find(*schema, "unevaluatedProperties") != nullptr) {
    report(schema, "unevaluatedProperties", "it is not enforced");
  }
  for (const std::string_view word : {"$dynamicRef", "$recursiveRef", "extends", "disallow"}) {
    if (json::find(*schema, word) != nullptr) {
      report(schema, word, "it is not supported");
    }
  }
}

std::size_t SchemaLogic::prefix_size(const Rules& rules) const {
  std::size_t size = 0;
  for (const SchemaPtr schema : rules.members) {
    const json::Value* prefix = array_items(schema);
    if (prefix != nullptr && prefix->is_array()) {
      size = std::max(size, prefix->get_array().size());
    }
  }
  return size;
}

Goal SchemaLogic::item_goal(const Rules& rules, std::size_t index) const {
  std::vector<SchemaPtr> all;
  for (const SchemaPtr schema : rules.members) {
    const json::Value* prefix = array_items(schema);
    if (prefix != nullptr && prefix->is_array() && index < prefix->get_array().size()) {
      all.push_back(&prefix->get_array()[index]);
    } else if (const json::Value* rest = rest_items(schema)) {
      all.push_back(rest);
    }
  }
  return make_goal(std::move(all));
}

std::vector<std::string> SchemaLogic::property_names(const Rules& rules) const {
  std::vector<std::string> out;
  std::set<std::string> seen;
  const auto add = [&](std::string name) {
    if (seen.insert(name).second) {
      out.push_back(std::move(name));
    }
  };
  Goal members = rules.members;
  std::stable_sort(members.begin(), members.end(), [&](SchemaPtr a, SchemaPtr b) {
    return document_->order_of(a) < document_->order_of(b);
  });
  for (const SchemaPtr schema : members) {
    const json::Value* properties = json::find(*schema, "properties");
    if (properties != nullptr && properties->is_object()) {
      for (const auto& member : properties->get_object()) {
        add(std::string(member.key()));
      }
    }
  }
  for (const std::string& name : rules.required) {
    add(name);
  }
  return out;
}

Result<Goal> SchemaLogic::property_goal(const Rules& rules, const std::string& key) {
  std::vector<SchemaPtr> all;
  for (const SchemaPtr schema : rules.members) {
    bool covered = false;
    const json::Value* properties = json::find(*schema, "properties");
    if (const json::Value* own = properties == nullptr ? nullptr : json::find(*properties, key)) {
      all.push_back(own);
      covered = true;
    }
    const json::Value* patterns = json::find(*schema, "patternProperties");
    if (patterns != nullptr && patterns->is_object()) {
      for (const auto& member : patterns->get_object()) {
        const DfaPtr dfa = pattern(schema, "patternProperties", member.key());
        if (dfa != nullptr && dfa->contains(key)) {
          all.push_back(&member.value());
          covered = true;
        }
      }
    }
    const json::Value* additional = json::find(*schema, "additionalProperties");
    if (!covered && additional != nullptr) {
      all.push_back(additional);
    }
    if (const json::Value* names = json::find(*schema, "propertyNames")) {
      TANDEM_ASSIGN(const bool allowed, accepts(make_goal({names}), json::String(key)));
      if (!allowed) {
        static const json::Value kFalse(false);
        return Goal{&kFalse};
      }
    }
  }
  return make_goal(std::move(all));
}

// What propertyNames allows: nothing to say, one automaton, or an error.
Result<std::optional<DfaPtr>> SchemaLogic::name_filter(const Rules& rules) {
  std::vector<SchemaPtr> names;
  for (const SchemaPtr schema : rules.members) {
    if (const json::Value* own = json::find(*schema, "propertyNames")) {
      names.push_back(own);
    }
  }
  const Goal goal = make_goal(names);
  if (goal.empty()) {
    return std::optional<DfaPtr>();
  }
  TANDEM_ASSIGN(const std::vector<Goal> options, alternatives(goal));
  std::vector<Rules> stringy;
  for (const Goal& option : options) {
    TANDEM_ASSIGN(Rules one, this->rules(option));
    if ((one.types & kStringBit) != 0) {
      stringy.push_back(std::move(one));
    }
  }
  if (stringy.empty()) {
    return std::optional<DfaPtr>(std::make_shared<const Dfa>(Dfa::literals({})));
  }
  if (stringy.size() > 1) {
    return invalid_argument("propertyNames with alternatives");
  }
  StringRules& rule = stringy[0].string;
  if (stringy[0].values) {
    std::vector<std::string> texts;
    for (const SchemaPtr value : *stringy[0].values) {
      if (value->is_string()) {
        texts.emplace_back(value->get_string());
      }
    }
    rule.all.push_back(std::make_shared<const Dfa>(Dfa::literals(texts)));
  }
  if (rule.min > 0 || rule.max != kNoLimit) {
    const std::string limit = rule.max == kNoLimit ? "" : std::to_string(rule.max);
    TANDEM_ASSIGN(DfaPtr length,
                  compile_pattern("[\\s\\S]{" + std::to_string(rule.min) + "," + limit + "}",
                                  RegexMatch::kWhole));
    rule.all.push_back(std::move(length));
  }
  TANDEM_ASSIGN(DfaPtr dfa, string_dfa(rule));
  return dfa == nullptr ? std::optional<DfaPtr>() : std::optional<DfaPtr>(std::move(dfa));
}

Result<std::vector<KeyRegion>> SchemaLogic::other_keys(const Rules& rules,
                                                       const std::vector<std::string>& named) {
  struct Region {
    StringRules keys;
    std::vector<bool> inside;  // per pattern
  };
  struct Pattern {
    SchemaPtr owner;
    SchemaPtr schema;
    DfaPtr keys;
  };
  std::vector<Pattern> patterns;
  for (const SchemaPtr schema : rules.members) {
    const json::Value* all = json::find(*schema, "patternProperties");
    if (all != nullptr && all->is_object()) {
      for (const auto& member : all->get_object()) {
        if (DfaPtr dfa = pattern(schema, "patternProperties", member.key())) {
          patterns.push_back({schema, &member.value(), std::move(dfa)});
        }
      }
    }
  }
  Region start;
  if (!named.empty()) {
    start.keys.none.push_back(std::make_shared<const Dfa>(Dfa::literals(named)));
  }
  TANDEM_ASSIGN(std::optional<DfaPtr> filter, name_filter(rules));
  if (filter) {
    start.keys.all.push_back(std::move(*filter));
  }
  std::vector<Region> regions{start};
  for (const Pattern& p : patterns) {
    std::vector<Region> split;
    for (const Region& region : regions) {
      for (const bool inside : {true, false}) {
        Region part = region;
        (inside ? part.keys.all : part.keys.none).push_back(p.keys);
        part.inside.push_back(inside);
        TANDEM_ASSIGN(const DfaPtr dfa, string_dfa(part.keys));
        if (dfa == nullptr || !dfa->empty()) {
          split.push_back(std::move(part));
        }
      }
    }
    regions = std::move(split);
    if (regions.size() > kMaxKeyRegions) {
      return resource_exhausted("patternProperties overlap in more than {} ways", kMaxKeyRegions);
    }
  }
  std::vector<KeyRegion> out;
  for (const Region& region : regions) {
    std::vector<SchemaPtr> all;
    for (const SchemaPtr schema : rules.members) {
      bool covered = false;
      for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (patterns[i].owner == schema && region.inside[i]) {
          all.push_back(patterns[i].schema);
          covered = true;
        }
      }
      const json::Value* additional = json::find(*schema, "additionalProperties");
      if (!covered && additional != nullptr) {
        all.push_back(additional);
      }
    }
    Goal goal = make_goal(std::move(all));
    if (is_false(goal)) {
      continue;
    }
    TANDEM_ASSIGN(DfaPtr keys, string_dfa(region.keys));
    if (keys == nullptr || !keys->empty()) {
      out.push_back({std::move(keys), std::move(goal)});
    }
  }
  return out;
}

Result<DfaPtr> SchemaLogic::string_dfa(const StringRules& rules) const {
  DfaPtr out;
  const auto combine = [&](const DfaPtr& other, Dfa::Op op) -> Status {
    std::optional<Dfa> both = Dfa::product(*out, *other, op, kMaxDfaStates);
    if (!both) {
      return resource_exhausted("the patterns together need more than {} states", kMaxDfaStates);
    }
    out = std::make_shared<const Dfa>(std::move(*both));
    return ok_status();
  };
  for (const DfaPtr& dfa : rules.all) {
    if (out == nullptr) {
      out = dfa;
    } else {
      TANDEM_TRY(combine(dfa, Dfa::Op::kAnd));
    }
  }
  for (const DfaPtr& dfa : rules.none) {
    if (out == nullptr) {
      out = Dfa::any_text();
    }
    TANDEM_TRY(combine(dfa, Dfa::Op::kMinus));
  }
  return out;
}

bool SchemaLogic::provably_empty(const Goal& goal, int depth) {
  if (is_false(goal)) {
    return true;
  }
  if (depth > kMaxEmptinessDepth) {
    return false;
  }
  const auto known = emptiness_.find(goal);
  if (known != emptiness_.end()) {
    return known->second;
  }
  ++quiet_;
  bool empty = false;
  const Result<std::vector<Goal>> options = alternatives(goal);
  if (options.ok()) {
    empty = std::all_of(options->begin(), options->end(), [&](const Goal& option) {
      const Result<Rules> merged = rules(option);
      return merged.ok() && rules_empty(*merged, depth);
    });
  }
  --quiet_;
  if (depth == 0) {
    emptiness_[goal] = empty;
  }
  return empty;
}

bool SchemaLogic::rules_empty(const Rules& rules, int depth) {
  if (rules.values) {
    return std::all_of(rules.values->begin(), rules.values->end(), [&](SchemaPtr value) {
      const Result<bool> ok = rules_accept(rules, *value);
      return ok.ok() && !*ok;
    });
  }
  if ((rules.types & (kNullBit | kBoolBit)) != 0) {
    return false;
  }
  if ((rules.types & (kIntegerBit | kFractionBit)) != 0) {
    const Result<DfaPtr> numbers = number_dfa(rules.number);
    if (!numbers.ok() || !(*numbers)->empty()) {
      return false;
    }
  }
  if ((rules.types & kStringBit) != 0) {
    const Result<DfaPtr> texts = string_dfa(rules.string);
    if (!texts.ok() ||
        Lexeme::create(TextForm::kRaw, *texts, rules.string.min, rules.string.max).has_value()) {
      return false;
    }
  }
  if ((rules.types & kArrayBit) != 0) {
    bool empty = false;
    const std::size_t look = std::min<std::uint64_t>(rules.items.min, prefix_size(rules) + 1);
    for (std::size_t i = 0; i < look && !empty; ++i) {
      empty = provably_empty(item_goal(rules, i), depth + 1);
    }
    if (!empty) {
      return false;
    }
  }
  if ((rules.types & kObjectBit) != 0) {
    for (const std::string& name : rules.required) {
      const Result<Goal> goal = property_goal(rules, name);
      if (goal.ok() && provably_empty(*goal, depth + 1)) {
        return true;
      }
    }
    return false;
  }
  return true;
}

Result<bool> SchemaLogic::accepts(const Goal& goal, const json::Value& value) {
  if (is_false(goal)) {
    return false;
  }
  TANDEM_ASSIGN(const std::vector<Goal> options, alternatives(goal));
  for (const Goal& option : options) {
    TANDEM_ASSIGN(const Rules merged, rules(option));
    TANDEM_ASSIGN(const bool ok, rules_accept(merged, value));
    if (ok) {
      return true;
    }
  }
  return false;
}

Result<bool> SchemaLogic::rules_accept(const Rules& rules, const json::Value& value) {
  if ((rules.types & type_of(value)) == 0 ||
      (rules.values && std::none_of(rules.values->begin(), rules.values->end(),
                                    [&](SchemaPtr v) { return same(*v, value); }))) {
    return false;
  }
  if (value.is_bool()) {
    return (rules.bools & (value.get_bool() ? 2 : 1)) != 0;
  }
  if (value.is_number()) {
    const std::optional<Decimal> d = to_decimal(value);
    bool known = false;
    const bool inside = d && in_range(rules.number, *d, &known);
    return inside && known;
  }
  if (value.is_string()) {
    const std::string_view text = value.get_string();
    const std::size_t length = code_points(text);
    const auto has = [&](const DfaPtr& dfa) { return dfa->contains(text); };
    return length >= rules.string.min && length <= rules.string.max &&
           std::all_of(rules.string.all.begin(), rules.string.all.end(), has) &&
           std::none_of(rules.string.none.begin(), rules.string.none.end(), has);
  }
  if (value.is_array()) {
    const json::Array& items = value.get_array();
    if (items.size() < rules.items.min || (rules.items.max && items.size() > *rules.items.max)) {
      return false;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      TANDEM_ASSIGN(const bool ok, accepts(item_goal(rules, i), items[i]));
      if (!ok) {
        return false;
      }
    }
    return true;
  }
  if (!value.is_object()) {
    return true;
  }
  const json::Object& members = value.get_object();
  if (members.size() < rules.properties.min ||
      (rules.properties.max && members.size() > *rules.properties.max) ||
      std::any_of(rules.required.begin(), rules.required.end(),
                  [&](const std::string& name) { return !members.contains(name); })) {
    return false;
  }
  for (const auto& member : members) {
    TANDEM_ASSIGN(const Goal goal, property_goal(rules, std::string(member.key())));
    TANDEM_ASSIGN(const bool ok, accepts(goal, member.value()));
    if (!ok) {
      return false;
    }
  }
  return true;
}

}  // namespace tandem::grammar
