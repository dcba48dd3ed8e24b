#include "engine/grammar/graph.h"

#include <algorithm>
#include <utility>

namespace tandem::grammar {

int blank_next(std::uint32_t state, std::uint8_t byte) {
  if (state == 0) {
    return byte == ' ' ? 1 : byte == '\n' ? 2 : -1;
  }
  if (state == 1 || state >= 2 + kMaxIndent || (byte != ' ' && byte != '\t')) {
    return -1;
  }
  return static_cast<int>(state) + 1;
}

NodeId Graph::add_node() {
  nodes_.emplace_back();
  return static_cast<NodeId>(nodes_.size() - 1);
}

RuleId Graph::add_rule(NodeId start) {
  rules_.push_back(start);
  return static_cast<RuleId>(rules_.size() - 1);
}

std::uint32_t Graph::add_lexeme(Lexeme lexeme) {
  lexemes_.push_back(std::move(lexeme));
  return static_cast<std::uint32_t>(lexemes_.size() - 1);
}

void Graph::add(NodeId from, Edge edge) {
  sources_.push_back(from);
  edges_.push_back(edge);
}

void Graph::empty(NodeId from, NodeId to) {
  Edge edge;
  edge.target = to;
  add(from, edge);
}

void Graph::byte(NodeId from, std::uint8_t lo, std::uint8_t hi, NodeId to) {
  Edge edge;
  edge.kind = EdgeKind::kByte;
  edge.lo = lo;
  edge.hi = hi;
  edge.target = to;
  add(from, edge);
}

void Graph::literal(NodeId from, std::string_view text, NodeId to) {
  if (text.empty()) {
    empty(from, to);
    return;
  }
  Edge edge;
  edge.kind = EdgeKind::kLiteral;
  edge.arg = static_cast<std::uint32_t>(literals_.size());
  edge.size = static_cast<std::uint32_t>(text.size());
  edge.target = to;
  literals_ += text;
  add(from, edge);
}

void Graph::lexeme(NodeId from, std::uint32_t lexeme, NodeId to) {
  Edge edge;
  edge.kind = EdgeKind::kLexeme;
  edge.arg = lexeme;
  edge.target = to;
  add(from, edge);
}

void Graph::call(NodeId from, RuleId rule, NodeId to) {
  Edge edge;
  edge.kind = EdgeKind::kCall;
  edge.arg = rule;
  edge.target = to;
  add(from, edge);
}

void Graph::special(NodeId from, Role role, NodeId to) {
  Edge edge;
  edge.kind = EdgeKind::kSpecial;
  edge.arg = static_cast<std::uint32_t>(role);
  edge.target = to;
  add(from, edge);
}

void Graph::lay_out() {
  for (Node& node : nodes_) {
    node.n_edges = 0;
    node.consumes = false;
  }
  for (const NodeId from : sources_) {
    ++nodes_[from].n_edges;
  }
  std::uint32_t next = 0;
  for (Node& node : nodes_) {
    node.first_edge = next;
    next += std::exchange(node.n_edges, 0U);
  }
  std::vector<Edge> sorted(edges_.size());
  std::vector<NodeId> sorted_sources(edges_.size());
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    Node& node = nodes_[sources_[i]];
    const std::uint32_t at = node.first_edge + node.n_edges++;
    sorted[at] = edges_[i];
    sorted_sources[at] = sources_[i];
    const EdgeKind kind = edges_[i].kind;
    node.consumes |=
        kind == EdgeKind::kByte || kind == EdgeKind::kLiteral || kind == EdgeKind::kSpecial;
  }
  edges_ = std::move(sorted);
  sources_ = std::move(sorted_sources);
}

// A node is productive if some finite text leads from it to the end of its rule.
std::vector<bool> Graph::productive_nodes() const {
  std::vector<std::vector<std::uint32_t>> into(nodes_.size());   // edges by target
  std::vector<std::vector<std::uint32_t>> calls(rules_.size());  // call edges by rule
  std::vector<std::vector<RuleId>> starts(nodes_.size());
  for (std::uint32_t i = 0; i < edges_.size(); ++i) {
    into[edges_[i].target].push_back(i);
    if (edges_[i].kind == EdgeKind::kCall) {
      calls[edges_[i].arg].push_back(i);
    }
  }
  for (RuleId r = 0; r < rules_.size(); ++r) {
    starts[rules_[r]].push_back(r);
  }
  std::vector<bool> good(nodes_.size(), false);
  std::vector<NodeId> todo;
  const auto mark = [&](NodeId node) {
    if (!good[node]) {
      good[node] = true;
      todo.push_back(node);
    }
  };
  const auto try_edge = [&](std::uint32_t i) {
    const Edge& edge = edges_[i];
    if (good[edge.target] && (edge.kind != EdgeKind::kCall || good[rules_[edge.arg]])) {
      mark(sources_[i]);
    }
  };
  for (NodeId n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].end) {
      mark(n);
    }
  }
  while (!todo.empty()) {
    const NodeId node = todo.back();
    todo.pop_back();
    for (const std::uint32_t i : into[node]) {
      try_edge(i);
    }
    for (const RuleId rule : starts[node]) {
      for (const std::uint32_t i : calls[rule]) {
        try_edge(i);
      }
    }
  }
  return good;
}

Status Graph::check_left_recursion() const {
  // Depth-first over what can be entered without input: empty edges, calls, and what follows a call
  // or a lexeme that may be empty (approximated by: everything that follows a nullable rule).
  std::vector<bool> nullable(rules_.size(), false);
  std::vector<bool> reaches_end(nodes_.size(), false);
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t i = edges_.size(); i-- > 0;) {
      const Edge& e = edges_[i];
      const bool passes =
          e.kind == EdgeKind::kEmpty || (e.kind == EdgeKind::kCall && nullable[e.arg]) ||
          (e.kind == EdgeKind::kLexeme && lexemes_[e.arg].accepts(lexemes_[e.arg].start()));
      if (passes && !reaches_end[sources_[i]] && (reaches_end[e.target] || nodes_[e.target].end)) {
        reaches_end[sources_[i]] = changed = true;
      }
    }
    for (RuleId r = 0; r < rules_.size(); ++r) {
      if (!nullable[r] && (reaches_end[rules_[r]] || nodes_[rules_[r]].end)) {
        nullable[r] = changed = true;
      }
    }
  }
  enum : std::uint8_t { kNew, kOpen, kClosed };
  std::vector<std::uint8_t> mark(nodes_.size(), kNew);
  std::vector<std::pair<NodeId, std::uint32_t>> path;  // node, next move
  std::vector<bool> entered_by_call;
  for (const NodeId start : rules_) {
    if (mark[start] != kNew) {
      continue;
    }
    path.emplace_back(start, 0);
    entered_by_call.push_back(false);
    mark[start] = kOpen;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next >= 2 * nodes_[node].n_edges) {
        mark[node] = kClosed;
        path.pop_back();
        entered_by_call.pop_back();
        continue;
      }
      const Edge& e = edges_[nodes_[node].first_edge + next / 2];
      const bool into_rule = next % 2 == 0;
      ++next;
      const bool over =
          e.kind == EdgeKind::kEmpty || (e.kind == EdgeKind::kCall && nullable[e.arg]) ||
          (e.kind == EdgeKind::kLexeme && lexemes_[e.arg].accepts(lexemes_[e.arg].start()));
      if (into_rule ? e.kind != EdgeKind::kCall : !over) {
        continue;
      }
      const NodeId to = into_rule ? rules_[e.arg] : e.target;
      if (mark[to] == kOpen) {
        // A loop of empty moves inside one rule is harmless; one through a call never ends.
        bool through_call = into_rule;
        for (std::size_t i = path.size(); i-- > 0 && path[i].first != to;) {
          through_call |= entered_by_call[i];
        }
        if (through_call) {
          return invalid_argument("a rule can call itself before it reads anything");
        }
        continue;
      }
      if (mark[to] == kNew) {
        mark[to] = kOpen;
        path.emplace_back(to, 0);
        entered_by_call.push_back(into_rule);
      }
    }
  }
  return ok_status();
}

Status Graph::finish(RuleId root) {
  root_ = root;
  lay_out();
  const std::vector<bool> good = productive_nodes();
  if (!good[rules_[root]]) {
    return invalid_argument("no text satisfies this description");
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    const Edge edge = edges_[i];
    if (good[edge.target] && (edge.kind != EdgeKind::kCall || good[rules_[edge.arg]])) {
      edges_[kept] = edge;
      sources_[kept++] = sources_[i];
    }
  }
  edges_.resize(kept);
  sources_.resize(kept);
  lay_out();
  TANDEM_TRY(check_left_recursion());
  sources_ = {};
  return ok_status();
}

}  // namespace tandem::grammar
