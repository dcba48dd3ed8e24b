#include "engine/grammar/schema_logic.h"

#include <algorithm>
#include <array>

namespace tandem::grammar {
namespace {

constexpr std::size_t kMaxAlternatives = 512;
constexpr std::size_t kMaxExclusiveOptions = 48;
constexpr int kMaxNegationDepth = 12;

// Keywords that constrain values directly (not through other schemas that are taken apart first).
bool is_assertion(std::string_view key) {
  static const std::set<std::string_view> kWords = {"type",
                                                    "enum",
                                                    "const",
                                                    "multipleOf",
                                                    "maximum",
                                                    "exclusiveMaximum",
                                                    "minimum",
                                                    "exclusiveMinimum",
                                                    "maxLength",
                                                    "minLength",
                                                    "pattern",
                                                    "format",
                                                    "maxItems",
                                                    "minItems",
                                                    "uniqueItems",
                                                    "maxContains",
                                                    "minContains",
                                                    "contains",
                                                    "items",
                                                    "prefixItems",
                                                    "additionalItems",
                                                    "unevaluatedItems",
                                                    "maxProperties",
                                                    "minProperties",
                                                    "required",
                                                    "properties",
                                                    "patternProperties",
                                                    "additionalProperties",
                                                    "propertyNames",
                                                    "unevaluatedProperties",
                                                    "$dynamicRef",
                                                    "$recursiveRef",
                                                    "extends",
                                                    "disallow",
                                                    internal_keyword::kNotPattern,
                                                    internal_keyword::kNotEnum,
                                                    internal_keyword::kNotFormat};
  return kWords.count(key) != 0;
}

const json::Value* false_schema() {
  static const json::Value kFalse(false);
  return &kFalse;
}

json::Value object_of(std::string_view key, json::Value value) {
  json::Object out;
  out[key] = std::move(value);
  return out;
}

// {"type": type, key: value}
json::Value typed(std::string_view type, std::string_view key, json::Value value) {
  json::Object out;
  out["type"] = type;
  out[key] = std::move(value);
  return out;
}

json::Value any_of(json::Array options) {
  return options.size() == 1 ? json::Value(options[0]) : object_of("anyOf", std::move(options));
}

bool has_scalars_only(const json::Value& values) {
  return std::none_of(values.get_array().begin(), values.get_array().end(),
                      [](const json::Value& v) { return v.is_object() || v.is_array(); });
}

std::optional<std::uint64_t> count_of(const json::Value& value) {
  const std::optional<Decimal> d = to_decimal(value);
  if (!d || d->negative || !d->is_integer() || d->integer.size() > 15) {
    return std::nullopt;
  }
  return d->integer.empty() ? 0 : std::stoull(d->integer);
}

Status wrong(std::string_view keyword, const json::Value& value, std::string_view expected) {
  return invalid_argument("'{}' is {}; expected {}", keyword, json::type_name(value), expected);
}

}  // namespace

Goal make_goal(std::vector<SchemaPtr> schemas) {
  Goal out;
  for (const SchemaPtr schema : schemas) {
    if (schema->is_bool()) {
      if (!schema->get_bool()) {
        return {false_schema()};
      }
      continue;
    }
    if (!schema->is_object() || !schema->get_object().empty()) {
      out.push_back(schema);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<std::vector<Goal>> SchemaLogic::alternatives(const Goal& goal) {
  std::vector<Goal> out;
  Branch branch;
  branch.pending = goal;
  TANDEM_TRY(expand(std::move(branch), &out));
  return out;
}

bool SchemaLogic::already_visited(SchemaPtr option, const Branch& branch) const {
  for (int hops = 0; hops < 64; ++hops) {
    if (branch.visited.count(option) != 0) {
      return true;
    }
    const json::Value* ref = json::find(*option, "$ref");
    if (ref == nullptr || !ref->is_string()) {
      return false;
    }
    const Result<SchemaPtr> target =
        document_->resolve(option, std::string_view(ref->get_string()));
    if (!target.ok()) {
      return false;
    }
    option = *target;
  }
  return true;
}

Status SchemaLogic::expand(Branch branch, std::vector<Goal>* out) {
  while (!branch.pending.empty()) {
    const SchemaPtr next = branch.pending.back();
    branch.pending.pop_back();
    TANDEM_ASSIGN(const bool possible, take(next, &branch));
    if (!possible) {
      return ok_status();
    }
  }
  if (branch.choices.empty()) {
    if (out->size() >= kMaxAlternatives) {
      return resource_exhausted("a schema splits into more than {} alternatives", kMaxAlternatives);
    }
    std::sort(branch.members.begin(), branch.members.end());
    out->push_back(std::move(branch.members));
    return ok_status();
  }
  const Choice choice = std::move(branch.choices.back());
  branch.choices.pop_back();
  std::vector<SchemaPtr> options = choice.options;
  if (choice.exclusive && quiet_ == 0) {  // to prove emptiness, any option may count
    TANDEM_ASSIGN(options, exclusive_options(choice, branch));
  }
  for (const SchemaPtr option : options) {
    // An option that leads back to a schema being taken apart adds no value of its own.
    if (already_visited(option, branch)) {
      continue;
    }
    Branch copy = branch;
    copy.pending.push_back(option);
    TANDEM_TRY(expand(std::move(copy), out));
  }
  return ok_status();
}

Result<bool> SchemaLogic::take(SchemaPtr schema, Branch* branch) {
  if (schema->is_bool()) {
    return schema->get_bool();
  }
  if (!schema->is_object()) {
    return invalid_argument("{} is {}; expected a schema", document_->path_of(schema),
                            json::type_name(*schema));
  }
  if (!branch->visited.insert(schema).second) {
    return true;
  }
  const json::Object& object = schema->get_object();
  if (const json::Value* ref = object.if_contains("$ref"); ref != nullptr && ref->is_string()) {
    TANDEM_ASSIGN(const SchemaPtr target,
                  document_->resolve(schema, std::string_view(ref->get_string())));
    branch->pending.push_back(target);
    if (document_->ref_hides_siblings()) {
      return true;
    }
  }
  bool asserts = false;
  for (const auto& member : object) {
    asserts |= is_assertion(member.key());
    const bool all = member.key() == "allOf";
    if (member.key() == "oneOf" && schema == undecided_) {
      continue;
    }
    if (all || member.key() == "anyOf" || member.key() == "oneOf") {
      if (!member.value().is_array()) {
        return wrong(member.key(), member.value(), "an array");
      }
      Choice choice{schema, {}, member.key() == "oneOf"};
      for (const json::Value& option : member.value().get_array()) {
        (all ? branch->pending : choice.options).push_back(&option);
      }
      if (!all && choice.options.size() == 1) {
        branch->pending.push_back(choice.options[0]);
      } else if (!all) {
        branch->choices.push_back(std::move(choice));
      }
    } else if (member.key() == "not") {
      if (const SchemaPtr negated = negation_of(&member.value())) {
        branch->pending.push_back(negated);
      } else {
        report(schema, "not", "its negation has no automaton");
      }
    } else if (member.key() == internal_keyword::kPointer) {
      branch->pending.push_back(document_->pointed_at(member.value().to_number<std::size_t>()));
    }
  }
  if (asserts) {
    branch->members.push_back(schema);
  }
  if (conditionals_.count(schema) == 0) {
    conditionals_[schema] = conditional_choices(schema);
  }
  if (dependencies_.count(schema) == 0) {
    TANDEM_ASSIGN(dependencies_[schema], dependency_choices(schema));
  }
  for (const auto* choices : {&conditionals_[schema], &dependencies_[schema]}) {
    branch->choices.insert(branch->choices.end(), choices->begin(), choices->end());
  }
  return true;
}

SchemaPtr SchemaLogic::negation_of(SchemaPtr schema) {
  const auto it = negations_.find(schema);
  if (it != negations_.end()) {
    return it->second;
  }
  std::optional<json::Value> negated = negate(schema, 0);
  return negations_[schema] = negated ? document_->own(std::move(*negated)) : nullptr;
}

std::vector<SchemaLogic::Choice> SchemaLogic::conditional_choices(SchemaPtr schema) {
  const json::Value* condition = json::find(*schema, "if");
  const json::Value* then = json::find(*schema, "then");
  const json::Value* otherwise = json::find(*schema, "else");
  if (condition == nullptr || (then == nullptr && otherwise == nullptr)) {
    return {};
  }
  const SchemaPtr negated = negation_of(condition);
  if (negated == nullptr) {
    report(schema, "if", "its negation has no automaton");
    return {};
  }
  const auto both = [&](SchemaPtr first, const json::Value* second) {
    json::Array all;
    all.push_back(document_->pointer_to(first));
    if (second != nullptr) {
      all.push_back(document_->pointer_to(second));
    }
    return document_->own(object_of("allOf", std::move(all)));
  };
  return {{schema, {both(condition, then), both(negated, otherwise)}, false}};
}

Result<std::vector<SchemaLogic::Choice>> SchemaLogic::dependency_choices(SchemaPtr schema) {
  std::vector<Choice> out;
  for (const std::string_view word : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const json::Value* all = json::find(*schema, word);
    if (all == nullptr) {
      continue;
    }
    if (!all->is_object()) {
      return wrong(word, *all, "an object");
    }
    for (const auto& member : all->get_object()) {
      json::Array required;
      required.push_back(json::String(member.key()));
      json::Object with;
      with["type"] = "object";
      if (member.value().is_array()) {
        for (const json::Value& other : member.value().get_array()) {
          required.push_back(other);
        }
      } else if (member.value().is_string()) {
        required.push_back(member.value());
      } else {
        json::Array dependent;
        dependent.push_back(document_->pointer_to(&member.value()));
        with["allOf"] = std::move(dependent);
      }
      with["required"] = std::move(required);
      json::Value without = object_of("properties", object_of(member.key(), false));
      out.push_back(
          {schema, {document_->own(std::move(with)), document_->own(std::move(without))}, false});
    }
  }
  return out;
}

Result<std::vector<SchemaPtr>> SchemaLogic::exclusive_options(const Choice& choice,
                                                              const Branch& branch) {
  const std::vector<SchemaPtr>& options = choice.options;
  if (options.size() > kMaxExclusiveOptions) {
    report(choice.owner, "oneOf", "it has too many options to tell apart");
    return options;
  }
  const std::pair<SchemaPtr, Goal> key(choice.owner, make_goal(branch.members));
  const auto known = exclusives_.find(key);
  if (known != exclusives_.end()) {
    return known->second;
  }
  std::vector<std::vector<bool>> overlap(options.size(), std::vector<bool>(options.size(), false));
  // The choice itself stands aside while its options are compared, or it would judge its own case.
  undecided_ = choice.owner;
  std::swap(emptiness_, undecided_emptiness_[choice.owner]);
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (std::size_t j = i + 1; j < options.size(); ++j) {
      std::vector<SchemaPtr> both = branch.members;
      both.push_back(options[i]);
      both.push_back(options[j]);
      overlap[i][j] = overlap[j][i] = !provably_empty(make_goal(both));
    }
  }
  std::swap(emptiness_, undecided_emptiness_[choice.owner]);
  undecided_ = nullptr;
  std::vector<SchemaPtr> out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    json::Array all;
    all.push_back(document_->pointer_to(options[i]));
    for (std::size_t j = 0; j < options.size(); ++j) {
      if (!overlap[i][j]) {
        continue;
      }
      if (const SchemaPtr negated = negation_of(options[j])) {
        all.push_back(document_->pointer_to(negated));
      } else {
        report(choice.owner, "oneOf", "its options overlap and have no expressible negation");
      }
    }
    out.push_back(all.size() == 1 ? options[i]
                                  : document_->own(object_of("allOf", std::move(all))));
  }
  return exclusives_[key] = std::move(out);
}

std::optional<json::Value> SchemaLogic::negate(SchemaPtr schema, int depth) {
  if (schema->is_bool()) {
    return json::Value(!schema->get_bool());
  }
  if (!schema->is_object() || depth > kMaxNegationDepth) {
    return std::nullopt;
  }
  json::Array refused;
  bool lost = false;
  for (const auto& member : schema->get_object()) {
    if (member.key() == "$ref" || !document_->ref_hides_siblings() ||
        json::find(*schema, "$ref") == nullptr) {
      negate_keyword(schema, member.key(), member.value(), depth, &refused, &lost);
    }
  }
  if (refused.empty()) {
    return lost ? std::nullopt : std::optional<json::Value>(json::Value(false));
  }
  return any_of(std::move(refused));
}

namespace {

json::Value complement_of_types(const json::Value& type) {
  json::Array names = type.is_array() ? type.get_array() : json::Array{type};
  const auto has = [&](std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const json::Value& v) {
      return v.is_string() && v.get_string() == name;
    });
  };
  json::Array rest;
  for (const std::string_view name : {"null", "boolean", "string", "array", "object"}) {
    if (!has(name)) {
      rest.push_back(json::String(name));
    }
  }
  if (!has("number")) {
    rest.push_back(json::String(has("integer") ? "\x01"
                                                 "fraction"
                                               : "number"));
  }
  return rest.empty() ? json::Value(false) : object_of("type", std::move(rest));
}

}  // namespace

void SchemaLogic::negate_keyword(SchemaPtr schema, std::string_view key, const json::Value& value,
                                 int depth, json::Array* out, bool* lost) {
  const auto add = [&](std::optional<json::Value> negated) {
    if (!negated) {
      *lost = true;
    } else if (!negated->is_bool() || negated->get_bool()) {
      out->push_back(std::move(*negated));
    }
  };
  const auto count = [&](std::string_view type, std::string_view opposite, int shift) {
    const std::optional<std::uint64_t> n = count_of(value);
    if (!n) {
      *lost = true;
    } else if (shift > 0 || *n > 0) {
      out->push_back(typed(type, opposite, shift > 0 ? *n + 1 : *n - 1));
    }
  };
  const auto number = [&](std::string_view strict_word, std::string_view open,
                          std::string_view closed) {
    const json::Value* strict = json::find(*schema, strict_word);
    const bool excludes = strict != nullptr && strict->is_bool() && strict->get_bool();
    out->push_back(typed("number", excludes ? closed : open, value));
  };
  if (key == "type") {
    out->push_back(complement_of_types(value));
  } else if (key == "required" && value.is_array()) {
    for (const json::Value& name : value.get_array()) {
      if (name.is_string()) {
        out->push_back(typed("object", "properties", object_of(name.get_string(), false)));
      }
    }
  } else if ((key == "enum" && value.is_array()) || key == "const") {
    json::Array values = key == "const" ? json::Array{value} : value.get_array();
    if (has_scalars_only(values)) {
      out->push_back(object_of(internal_keyword::kNotEnum, std::move(values)));
    } else {
      *lost = true;
    }
  } else if (key == "properties" && value.is_object()) {
    for (const auto& member : value.get_object()) {
      std::optional<json::Value> negated = negate(&member.value(), depth + 1);
      if (negated && (!negated->is_bool() || negated->get_bool())) {
        json::Object refused;
        refused["type"] = "object";
        refused["required"] = json::Array{json::String(member.key())};
        refused["properties"] = object_of(member.key(), std::move(*negated));
        out->push_back(std::move(refused));
      } else if (!negated) {
        *lost = true;
      }
    }
  } else if (key == "pattern" && value.is_string()) {
    out->push_back(typed("string", internal_keyword::kNotPattern, value));
  } else if (key == "format" && value.is_string()) {
    out->push_back(typed("string", internal_keyword::kNotFormat, value));
  } else if (key == "minLength") {
    count("string", "maxLength", -1);
  } else if (key == "maxLength") {
    count("string", "minLength", 1);
  } else if (key == "minItems") {
    count("array", "maxItems", -1);
  } else if (key == "maxItems") {
    count("array", "minItems", 1);
  } else if (key == "minProperties") {
    count("object", "maxProperties", -1);
  } else if (key == "maxProperties") {
    count("object", "minProperties", 1);
  } else if (key == "minimum") {
    number("exclusiveMinimum", "exclusiveMaximum", "maximum");
  } else if (key == "maximum") {
    number("exclusiveMaximum", "exclusiveMinimum", "minimum");
  } else if (key == "exclusiveMinimum" && value.is_number()) {
    out->push_back(typed("number", "maximum", value));
  } else if (key == "exclusiveMaximum" && value.is_number()) {
    out->push_back(typed("number", "minimum", value));
  } else if (key == "not") {
    out->push_back(document_->pointer_to(&value));
  } else if (key == "$ref" && value.is_string()) {
    const Result<SchemaPtr> target =
        document_->resolve(schema, std::string_view(value.get_string()));
    add(target.ok() ? negate(*target, depth + 1) : std::nullopt);
  } else if (key == internal_keyword::kPointer) {
    add(negate(document_->pointed_at(value.to_number<std::size_t>()), depth + 1));
  } else if (key == "allOf" && value.is_array()) {
    for (const json::Value& option : value.get_array()) {
      add(negate(&option, depth + 1));
    }
  } else if ((key == "anyOf" || key == "oneOf") && value.is_array()) {
    // For oneOf, "no option holds" is only a part of what is refused.
    json::Array all;
    for (const json::Value& option : value.get_array()) {
      std::optional<json::Value> negated = negate(&option, depth + 1);
      if (!negated) {
        *lost = true;
        return;
      }
      all.push_back(std::move(*negated));
    }
    *lost |= key == "oneOf";
    out->push_back(object_of("allOf", std::move(all)));
  } else if (is_assertion(key) || key == "if" || key == "dependencies" ||
             key == "dependentRequired" || key == "dependentSchemas") {
    const bool open = key == "additionalProperties" && (value.is_bool() && value.get_bool());
    const bool boolean_bound =
        value.is_bool() && (key == "exclusiveMinimum" || key == "exclusiveMaximum");
    *lost |= !open && !boolean_bound;
  }
}

void SchemaLogic::report(SchemaPtr schema, std::string_view keyword, std::string reason) {
  if (quiet_ > 0 || !reported_.emplace(schema, std::string(keyword)).second) {
    return;
  }
  unenforced_.push_back({document_->path_of(schema), std::string(keyword), std::move(reason)});
}

DfaPtr SchemaLogic::pattern(SchemaPtr schema, std::string_view keyword, std::string_view text) {
  auto it = patterns_.find(text);
  if (it == patterns_.end()) {
    it = patterns_.emplace(std::string(text), compile_pattern(text, RegexMatch::kSearch)).first;
  }
  if (!it->second.ok()) {
    report(schema, keyword, it->second.status().message());
    return nullptr;
  }
  return *it->second;
}

}  // namespace tandem::grammar
