// SchemaEmitter: writes the JSON texts that a goal accepts into a graph. Every goal that is not a
// mere scalar becomes a rule, so recursion and sharing cost nothing.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar/graph.h"
#include "engine/grammar/schema_logic.h"

namespace tandem::grammar {

class SchemaEmitter {
 public:
  SchemaEmitter(Graph* graph, SchemaLogic* logic) : graph_(graph), logic_(logic) {}

  // Adds every text of `goal` between the nodes. Rules that it calls are written by finish().
  Status value(const Goal& goal, NodeId from, NodeId to);

  // One alternative, in place.
  Status alternative(const Rules& rules, NodeId from, NodeId to);

  // Writes the rules that were called, and those that they call.
  Status finish();

  // One fixed JSON value, with free white space inside.
  void constant(const json::Value& value, NodeId from, NodeId to);

  // A string with its quotes.
  Status quoted(const StringRules& rules, NodeId from, NodeId to);

  // A number lexeme.
  Status number(const NumberRange& range, NodeId from, NodeId to);

  Graph* graph() { return graph_; }

  SchemaLogic* logic() { return logic_; }

 private:
  Status array(const Rules& rules, NodeId from, NodeId to);
  Status object(const Rules& rules, NodeId from, NodeId to);

  Graph* graph_;
  SchemaLogic* logic_;
  std::map<Goal, RuleId> rules_;
  std::deque<std::pair<Goal, RuleId>> todo_;
  std::map<std::string, std::uint32_t> numbers_;               // lexemes by range
  std::map<std::vector<const void*>, std::uint32_t> strings_;  // lexemes by automata and lengths
  std::vector<DfaPtr> kept_;                                   // what the keys point to
};

// The JSON text of a string, quotes included, as JSON.stringify writes it.
std::string quote(std::string_view text);

}  // namespace tandem::grammar
