// Graph: a grammar as rules over bytes. Nodes and edges form one nondeterministic automaton per
// rule; a call edge runs another rule and comes back. Built once, then read only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/lexeme.h"
#include "foundation/base/status.h"

namespace tandem::grammar {

using NodeId = std::uint32_t;
using RuleId = std::uint32_t;

enum class EdgeKind : std::uint8_t {
  kEmpty,    // no input
  kByte,     // one byte lo..hi
  kLiteral,  // the bytes literals[arg .. arg + size)
  kLexeme,   // lexemes[arg]
  kCall,     // rules[arg], then the target
  kSpecial,  // the special token with role arg
};

// Special tokens that a grammar can name.
enum class Role : std::uint32_t { kDsml = 0, kCount };

struct Edge {
  EdgeKind kind = EdgeKind::kEmpty;
  std::uint8_t lo = 0;
  std::uint8_t hi = 0;
  std::uint32_t arg = 0;
  std::uint32_t size = 0;
  NodeId target = 0;
};

struct Node {
  std::uint32_t first_edge = 0;
  std::uint32_t n_edges = 0;
  bool end = false;       // a rule may return here
  bool blank = false;     // a bounded run of white space may come first
  bool consumes = false;  // some edge reads a byte, a literal or a special token
};

// White space in front of a blank node: nothing, one space, or one newline and its indentation.
// The state counts what was read: 0 nothing, 1 a space, 2 + n a newline and n characters.
inline constexpr std::uint32_t kMaxIndent = 40;

// The state after `byte`, or -1.
int blank_next(std::uint32_t state, std::uint8_t byte);

class Graph {
 public:
  NodeId add_node();
  RuleId add_rule(NodeId start);

  // Makes the node a place where white space may come first. REQUIRES: no empty edge leads from one
  // blank node to another (the runs would add up).
  void set_blank(NodeId node) { nodes_[node].blank = true; }

  void set_end(NodeId node) { nodes_[node].end = true; }

  void set_rule_start(RuleId rule, NodeId start) { rules_[rule] = start; }

  std::uint32_t add_lexeme(Lexeme lexeme);

  void empty(NodeId from, NodeId to);
  void byte(NodeId from, std::uint8_t lo, std::uint8_t hi, NodeId to);
  void literal(NodeId from, std::string_view text, NodeId to);
  void lexeme(NodeId from, std::uint32_t lexeme, NodeId to);
  void call(NodeId from, RuleId rule, NodeId to);
  void special(NodeId from, Role role, NodeId to);

  // Lays the edges out for reading, drops everything that can never be completed.
  // ERRORS: kInvalidArgument if nothing can be derived from the root, or a rule can call itself
  // without reading anything first.
  Status finish(RuleId root);

  RuleId root() const { return root_; }

  NodeId rule_start(RuleId rule) const { return rules_[rule]; }

  const Node& node(NodeId id) const { return nodes_[id]; }

  const Edge& edge(std::uint32_t id) const { return edges_[id]; }

  const Lexeme& lexeme_at(std::uint32_t id) const { return lexemes_[id]; }

  std::string_view text(const Edge& edge) const {
    return std::string_view(literals_).substr(edge.arg, edge.size);
  }

  std::size_t node_count() const { return nodes_.size(); }

 private:
  void add(NodeId from, Edge edge);
  void lay_out();
  std::vector<bool> productive_nodes() const;
  Status check_left_recursion() const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<NodeId> sources_;  // of edges_, until finish()
  std::vector<NodeId> rules_;
  std::vector<Lexeme> lexemes_;
  std::string literals_;
  RuleId root_ = 0;
};

}  // namespace tandem::grammar
