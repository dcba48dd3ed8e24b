#include "engine/grammar/schema_emit.h"

#include <algorithm>

namespace tandem::grammar {
namespace {

constexpr std::size_t kMaxNodes = 400000;
constexpr std::uint64_t kMaxCountedItems = 4096;
constexpr std::uint64_t kMaxCountedProperties = 64;

bool is_scalar(const Rules& rules) {
  return !rules.values && (rules.types & (kArrayBit | kObjectBit)) == 0;
}

std::string range_key(const NumberRange& range) {
  std::string key = range.integer ? "i" : "n";
  if (range.min) {
    key += (range.min_exclusive ? ">" : ">=") + range.min->text();
  }
  if (range.max) {
    key += (range.max_exclusive ? "<" : "<=") + range.max->text();
  }
  for (const Decimal& d : range.multiples_of) {
    key += "*" + d.text();
  }
  for (const Decimal& d : range.excluded) {
    key += "!" + d.text();
  }
  return key;
}

// The object grammar: properties in order, each at most once, then the others. `count` runs along
// if the number of properties is limited; otherwise there is one layer.
class ObjectWriter {
 public:
  ObjectWriter(Graph* graph, SchemaLogic* logic, SchemaEmitter* emitter, const Rules& rules)
      : graph_(graph), logic_(logic), emitter_(emitter), rules_(rules) {}

  Status write(NodeId from, NodeId to) {
    TANDEM_TRY(plan());
    const std::size_t n = keys_.size();
    close_ = graph_->add_node();
    graph_->set_blank(close_);
    graph_->literal(close_, "}", to);
    make_layers(n);
    const NodeId open = graph_->add_node();
    graph_->set_blank(open);
    graph_->literal(from, "{", open);
    graph_->empty(open, at(choose_, 0, 0));
    if (first_required_ == n && rules_.properties.min == 0) {
      graph_->literal(open, "}", to);
    }
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      for (std::size_t i = 0; i <= n; ++i) {
        TANDEM_TRY(write_place(i, layer));
      }
    }
    return ok_status();
  }

 private:
  struct Key {
    std::string name;
    Goal goal;
    bool required = false;
  };

  Status plan() {
    const std::vector<std::string> names = logic_->property_names(rules_);
    for (const std::string& name : names) {
      TANDEM_ASSIGN(Goal goal, logic_->property_goal(rules_, name));
      const bool required =
          std::find(rules_.required.begin(), rules_.required.end(), name) != rules_.required.end();
      if (!SchemaLogic::is_false(goal) || required) {
        keys_.push_back({name, std::move(goal), required});
      }
    }
    TANDEM_ASSIGN(regions_, logic_->other_keys(rules_, names));
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].required) {
        last_required_ = i + 1;
        first_required_ = std::min(first_required_, i);
        ++required_;
      }
    }
    first_required_ = std::min(first_required_, keys_.size());
    const std::uint64_t most = rules_.properties.max.value_or(kNoLimit);
    const bool limited = rules_.properties.max && (!regions_.empty() || most < keys_.size());
    std::uint64_t min = rules_.properties.min;
    if (min <= required_) {
      min = 0;
    } else if (min > 1 && !regions_.empty()) {
      // Free keys may repeat, and a repeated key counts once.
      for (const SchemaPtr schema : rules_.members) {
        if (json::find(*schema, "minProperties") != nullptr) {
          logic_->report(schema, "minProperties", "keys that the schema does not name may repeat");
        }
      }
      min = 0;
    }
    if (std::max<std::uint64_t>(limited ? most : 0, min) > kMaxCountedProperties) {
      return resource_exhausted("minProperties or maxProperties above {} cannot be counted",
                                kMaxCountedProperties);
    }
    min_ = static_cast<std::size_t>(min);
    limited_ = limited;
    layers_ = 1 + static_cast<std::size_t>(limited ? most : min);
    return ok_status();
  }

  void make_layers(std::size_t n) {
    choose_.resize(layers_ * (n + 1));
    after_.resize(layers_ * (n + 1));
    for (std::size_t k = 0; k < choose_.size(); ++k) {
      choose_[k] = graph_->add_node();
      after_[k] = graph_->add_node();
    }
  }

  NodeId at(const std::vector<NodeId>& nodes, std::size_t i, std::size_t layer) const {
    return nodes[layer * (keys_.size() + 1) + i];
  }

  // choose: a key i or later comes next. after: a value was read; the next key is i or later.
  Status write_place(std::size_t i, std::size_t layer) {
    const std::size_t n = keys_.size();
    const NodeId choose = at(choose_, i, layer);
    const NodeId after = at(after_, i, layer);
    const bool full = limited_ && layer + 1 == layers_;
    const std::size_t next_layer = full ? layer : std::min(layer + 1, layers_ - 1);
    if (i >= last_required_ && layer >= min_) {
      graph_->empty(after, close_);
    }
    if (full) {
      return ok_status();
    }
    const NodeId comma = graph_->add_node();
    graph_->set_blank(comma);
    graph_->literal(after, ",", comma);
    graph_->empty(comma, choose);
    if (i < n) {
      const NodeId colon = graph_->add_node();
      graph_->set_blank(colon);
      graph_->literal(choose, quote(keys_[i].name) + ":", colon);
      if (!keys_[i].required) {
        graph_->empty(choose, at(choose_, i + 1, layer));
      }
      return emitter_->value(keys_[i].goal, colon, at(after_, i + 1, next_layer));
    }
    for (const KeyRegion& region : regions_) {
      StringRules keys;
      if (region.keys != nullptr) {
        keys.all.push_back(region.keys);
      }
      const NodeId key_end = graph_->add_node();
      const NodeId colon = graph_->add_node();
      graph_->set_blank(colon);
      TANDEM_TRY(emitter_->quoted(keys, choose, key_end));
      graph_->literal(key_end, ":", colon);
      TANDEM_TRY(emitter_->value(region.goal, colon, at(after_, n, next_layer)));
    }
    return ok_status();
  }

  Graph* graph_;
  SchemaLogic* logic_;
  SchemaEmitter* emitter_;
  const Rules& rules_;
  std::vector<Key> keys_;
  std::vector<KeyRegion> regions_;
  std::vector<NodeId> choose_;
  std::vector<NodeId> after_;
  NodeId close_ = 0;
  std::size_t first_required_ = kNoLimit;
  std::size_t last_required_ = 0;
  std::size_t required_ = 0;
  std::size_t min_ = 0;
  std::size_t layers_ = 1;
  bool limited_ = false;
};

}  // namespace

std::string quote(std::string_view text) {
  return json::dump(json::Value(json::String(text)));
}

Status SchemaEmitter::value(const Goal& goal, NodeId from, NodeId to) {
  if (SchemaLogic::is_false(goal)) {
    return ok_status();
  }
  if (graph_->node_count() > kMaxNodes) {
    return resource_exhausted("the schema needs more than {} grammar nodes", kMaxNodes);
  }
  const auto known = rules_.find(goal);
  if (known != rules_.end()) {
    graph_->call(from, known->second, to);
    return ok_status();
  }
  TANDEM_ASSIGN(const std::vector<Goal> options, logic_->alternatives(goal));
  bool scalar = true;
  std::vector<Rules> merged;
  for (const Goal& option : options) {
    TANDEM_ASSIGN(Rules rules, logic_->rules(option));
    scalar = scalar && is_scalar(rules);
    merged.push_back(std::move(rules));
  }
  if (!scalar) {
    const RuleId rule = graph_->add_rule(graph_->add_node());
    rules_.emplace(goal, rule);
    todo_.emplace_back(goal, rule);
    graph_->call(from, rule, to);
    return ok_status();
  }
  for (const Rules& rules : merged) {
    TANDEM_TRY(alternative(rules, from, to));
  }
  return ok_status();
}

Status SchemaEmitter::finish() {
  while (!todo_.empty()) {
    const std::pair<Goal, RuleId> next = std::move(todo_.front());
    todo_.pop_front();
    const NodeId end = graph_->add_node();
    graph_->set_end(end);
    TANDEM_ASSIGN(const std::vector<Goal> options, logic_->alternatives(next.first));
    for (const Goal& option : options) {
      TANDEM_ASSIGN(const Rules rules, logic_->rules(option));
      TANDEM_TRY(alternative(rules, graph_->rule_start(next.second), end));
    }
  }
  return ok_status();
}

Status SchemaEmitter::alternative(const Rules& rules, NodeId from, NodeId to) {
  if (rules.values) {
    for (const SchemaPtr value : *rules.values) {
      TANDEM_ASSIGN(const bool ok, logic_->rules_accept(rules, *value));
      if (ok) {
        constant(*value, from, to);
      }
    }
    return ok_status();
  }
  if ((rules.types & kNullBit) != 0) {
    graph_->literal(from, "null", to);
  }
  if ((rules.types & kBoolBit) != 0) {
    if ((rules.bools & 1) != 0) {
      graph_->literal(from, "false", to);
    }
    if ((rules.bools & 2) != 0) {
      graph_->literal(from, "true", to);
    }
  }
  if ((rules.types & (kIntegerBit | kFractionBit)) != 0) {
    TANDEM_TRY(number(rules.number, from, to));
  }
  if ((rules.types & kStringBit) != 0) {
    TANDEM_TRY(quoted(rules.string, from, to));
  }
  if ((rules.types & kArrayBit) != 0) {
    TANDEM_TRY(array(rules, from, to));
  }
  if ((rules.types & kObjectBit) != 0) {
    TANDEM_TRY(object(rules, from, to));
  }
  return ok_status();
}

Status SchemaEmitter::number(const NumberRange& range, NodeId from, NodeId to) {
  const std::string key = range_key(range);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) {
    graph_->lexeme(from, known->second, to);
    return ok_status();
  }
  TANDEM_ASSIGN(DfaPtr dfa, number_dfa(range));
  std::optional<Lexeme> lexeme = Lexeme::create(TextForm::kRaw, std::move(dfa));
  if (lexeme) {
    numbers_[key] = graph_->add_lexeme(std::move(*lexeme));
    graph_->lexeme(from, numbers_[key], to);
  }
  return ok_status();
}

Status SchemaEmitter::quoted(const StringRules& rules, NodeId from, NodeId to) {
  std::vector<const void*> key;
  for (const DfaPtr& dfa : rules.all) {
    key.push_back(dfa.get());
  }
  key.push_back(nullptr);
  for (const DfaPtr& dfa : rules.none) {
    key.push_back(dfa.get());
  }
  key.push_back(reinterpret_cast<const void*>(std::uintptr_t{rules.min}));
  key.push_back(reinterpret_cast<const void*>(std::uintptr_t{rules.max}));
  const NodeId open = graph_->add_node();
  const auto known = strings_.find(key);
  std::uint32_t lexeme_id = 0;
  if (known != strings_.end()) {
    lexeme_id = known->second;
  } else {
    TANDEM_ASSIGN(DfaPtr dfa, logic_->string_dfa(rules));
    const bool nothing = dfa != nullptr && dfa->empty();
    std::optional<Lexeme> lexeme =
        Lexeme::create(TextForm::kQuoted, std::move(dfa), rules.min, rules.max);
    if (!lexeme) {
      if (!nothing && rules.min <= rules.max && rules.min > (1U << 19)) {
        return resource_exhausted("minLength {} is too large to be counted", rules.min);
      }
      return ok_status();
    }
    lexeme_id = graph_->add_lexeme(std::move(*lexeme));
    strings_[key] = lexeme_id;
    kept_.insert(kept_.end(), rules.all.begin(), rules.all.end());
    kept_.insert(kept_.end(), rules.none.begin(), rules.none.end());
  }
  graph_->literal(from, "\"", open);
  graph_->lexeme(open, lexeme_id, to);
  return ok_status();
}

void SchemaEmitter::constant(const json::Value& value, NodeId from, NodeId to) {
  const auto node = [&](bool blank) {
    const NodeId n = graph_->add_node();
    if (blank) {
      graph_->set_blank(n);
    }
    return n;
  };
  if (value.is_array() && !value.get_array().empty()) {
    NodeId at = node(true);
    graph_->literal(from, "[", at);
    for (std::size_t i = 0; i < value.get_array().size(); ++i) {
      const NodeId after = node(false);
      constant(value.get_array()[i], at, after);
      at = node(true);
      if (i + 1 < value.get_array().size()) {
        graph_->literal(after, ",", at);
      } else {
        graph_->empty(after, at);
      }
    }
    graph_->literal(at, "]", to);
    return;
  }
  if (value.is_object() && !value.get_object().empty()) {
    NodeId at = node(true);
    graph_->literal(from, "{", at);
    std::size_t left = value.get_object().size();
    for (const auto& member : value.get_object()) {
      const NodeId colon = node(true);
      const NodeId after = node(false);
      graph_->literal(at, quote(member.key()) + ":", colon);
      constant(member.value(), colon, after);
      at = node(true);
      if (--left > 0) {
        graph_->literal(after, ",", at);
      } else {
        graph_->empty(after, at);
      }
    }
    graph_->literal(at, "}", to);
    return;
  }
  if (const std::optional<Decimal> d = to_decimal(value); d && d->integer.size() < 22) {
    graph_->literal(from, d->text(), to);
    return;
  }
  graph_->literal(from, json::dump(value), to);
}

Status SchemaEmitter::array(const Rules& rules, NodeId from, NodeId to) {
  const std::uint64_t prefix = logic_->prefix_size(rules);
  const std::uint64_t counted = std::max({prefix, rules.items.min, rules.items.max.value_or(0)});
  if (counted > kMaxCountedItems) {
    return resource_exhausted("minItems or maxItems above {} cannot be counted", kMaxCountedItems);
  }
  const NodeId open = graph_->add_node();
  const NodeId close = graph_->add_node();
  graph_->set_blank(open);
  graph_->set_blank(close);
  graph_->literal(from, "[", open);
  graph_->literal(close, "]", to);
  if (rules.items.min == 0) {
    graph_->literal(open, "]", to);
  }
  // One place per counted item; without a maximum the last place repeats.
  NodeId at = open;
  for (std::uint64_t i = 0; i < rules.items.max.value_or(counted + 1); ++i) {
    const Goal goal = logic_->item_goal(rules, static_cast<std::size_t>(i));
    const NodeId after = graph_->add_node();
    TANDEM_TRY(value(goal, at, after));
    if (i + 1 >= rules.items.min) {
      graph_->empty(after, close);
    }
    const NodeId next = graph_->add_node();
    graph_->set_blank(next);
    graph_->literal(after, ",", next);
    if (!rules.items.max && i == counted) {
      TANDEM_TRY(value(goal, next, after));
    }
    at = next;
    if (SchemaLogic::is_false(goal)) {
      break;
    }
  }
  return ok_status();
}

Status SchemaEmitter::object(const Rules& rules, NodeId from, NodeId to) {
  return ObjectWriter(graph_, logic_, this, rules).write(from, to);
}

}  // namespace tandem::grammar
