#include "engine/grammar/state_space.h"

#include <algorithm>

#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace tandem::grammar {
namespace {

constexpr std::uint32_t kKindShift = 30;
constexpr std::uint32_t kIdMask = (1U << kKindShift) - 1;
enum : std::uint32_t { kAtNode = 0, kInLiteral = 1, kInLexeme = 2 };

constexpr StateId kUnknown = 0xFFFFFFFFU;

std::uint32_t kind_of(const Item& item) {
  return item.where >> kKindShift;
}

std::uint32_t id_of(const Item& item) {
  return item.where & kIdMask;
}

std::uint64_t hash_of(const Item& item) {
  return mix64(mix64((std::uint64_t{item.stack} << 32) | item.where) ^ item.at);
}

}  // namespace

StateSpace::StateSpace(std::shared_ptr<const Graph> graph,
                       std::shared_ptr<const Vocabulary> vocabulary)
    : graph_(std::move(graph)), vocabulary_(std::move(vocabulary)) {
  states_.emplace_back();  // kDeadState
  states_[0].listed = true;
  frames_.push_back({0, 0});  // the empty stack
  seen_items_.resize(256);
  seen_epoch_.assign(256, 0);
  begin_state();
  add_node(0, graph_->rule_start(graph_->root()), 0);
  start_ = finish_state();
}

void StateSpace::begin_state() {
  building_.clear();
  building_accepts_ = false;
  seen_count_ = 0;
  ++epoch_;
}

// True if the item was not seen in this state yet.
bool StateSpace::first_visit(const Item& item) {
  if (2 * (seen_count_ + 1) > seen_items_.size()) {
    std::vector<Item> old;
    for (std::size_t i = 0; i < seen_items_.size(); ++i) {
      if (seen_epoch_[i] == epoch_) {
        old.push_back(seen_items_[i]);
      }
    }
    seen_items_.assign(seen_items_.size() * 2, {});
    seen_epoch_.assign(seen_items_.size(), epoch_ - 1);
    seen_count_ = 0;
    for (const Item& other : old) {
      first_visit(other);
    }
  }
  const std::size_t mask = seen_items_.size() - 1;
  std::size_t at = hash_of(item) & mask;
  while (seen_epoch_[at] == epoch_) {
    if (seen_items_[at] == item) {
      return false;
    }
    at = (at + 1) & mask;
  }
  seen_epoch_[at] = epoch_;
  seen_items_[at] = item;
  ++seen_count_;
  return true;
}

void StateSpace::add_node(std::uint32_t stack, NodeId node, std::uint32_t blanks) {
  pending_.push_back({stack, node, blanks});
  while (!pending_.empty()) {
    const Item item = pending_.back();
    pending_.pop_back();
    if (!first_visit(item)) {
      continue;
    }
    const Node& n = graph_->node(item.where);
    if (n.consumes || n.blank) {
      building_.push_back(item);
    }
    if (n.end) {
      if (item.stack == 0) {
        building_accepts_ = true;
      } else {
        const Frame& frame = frames_[item.stack];
        pending_.push_back({frame.parent, frame.node, 0});
      }
    }
    for (std::uint32_t i = 0; i < n.n_edges; ++i) {
      const Edge& edge = graph_->edge(n.first_edge + i);
      if (edge.kind == EdgeKind::kEmpty) {
        pending_.push_back({item.stack, edge.target, 0});
      } else if (edge.kind == EdgeKind::kCall) {
        const std::uint32_t below = push(edge.target, item.stack);
        pending_.push_back({below, graph_->rule_start(edge.arg), 0});
      } else if (edge.kind == EdgeKind::kLexeme) {
        const Lexeme& lexeme = graph_->lexeme_at(edge.arg);
        const Item inside{item.stack, (kInLexeme << kKindShift) | (n.first_edge + i),
                          lexeme.start()};
        if (first_visit(inside)) {
          building_.push_back(inside);
        }
        if (lexeme.accepts(lexeme.start())) {
          pending_.push_back({item.stack, edge.target, 0});
        }
      }
    }
  }
}

std::uint32_t StateSpace::push(NodeId node, std::uint32_t parent) {
  const Node& n = graph_->node(node);
  if (n.end && n.n_edges == 0 && !n.blank) {
    return parent;  // nothing happens between this return and the next one
  }
  const std::uint64_t key = (std::uint64_t{parent} << 32) | node;
  const auto [it, added] = frame_ids_.emplace(key, static_cast<std::uint32_t>(frames_.size()));
  if (added) {
    frames_.push_back({node, parent});
  }
  return it->second;
}

void StateSpace::advance_lexeme(std::uint32_t stack, std::uint32_t edge_id,
                                Lexeme::Position position, std::uint8_t byte) {
  const Edge& edge = graph_->edge(edge_id);
  const Lexeme& lexeme = graph_->lexeme_at(edge.arg);
  switch (lexeme.step(&position, byte)) {
    case Lexeme::Step::kDead:
      return;
    case Lexeme::Step::kDone:
      add_node(stack, edge.target, 0);
      return;
    case Lexeme::Step::kAlive: {
      const Item item{stack, (kInLexeme << kKindShift) | edge_id, position};
      if (first_visit(item)) {
        building_.push_back(item);
      }
      if (lexeme.accepts(position)) {
        add_node(stack, edge.target, 0);
      }
    }
  }
}

void StateSpace::advance(const Item& item, std::uint8_t byte) {
  const std::uint32_t id = id_of(item);
  if (kind_of(item) == kInLexeme) {
    advance_lexeme(item.stack, id, item.at, byte);
    return;
  }
  const auto literal = [&](std::uint32_t edge_id, std::uint64_t at) {
    const Edge& edge = graph_->edge(edge_id);
    if (static_cast<std::uint8_t>(graph_->text(edge)[at]) != byte) {
      return;
    }
    if (at + 1 == edge.size) {
      add_node(item.stack, edge.target, 0);
      return;
    }
    const Item next{item.stack, (kInLiteral << kKindShift) | edge_id, at + 1};
    if (first_visit(next)) {
      building_.push_back(next);
    }
  };
  if (kind_of(item) == kInLiteral) {
    literal(id, item.at);
    return;
  }
  const Node& node = graph_->node(id);
  for (std::uint32_t i = node.first_edge; i < node.first_edge + node.n_edges; ++i) {
    const Edge& edge = graph_->edge(i);
    if (edge.kind == EdgeKind::kByte && edge.lo <= byte && byte <= edge.hi) {
      add_node(item.stack, edge.target, 0);
    } else if (edge.kind == EdgeKind::kLiteral) {
      literal(i, 0);
    }
  }
  if (node.blank) {
    const int blanks = blank_next(static_cast<std::uint32_t>(item.at), byte);
    if (blanks >= 0) {
      add_node(item.stack, id, static_cast<std::uint32_t>(blanks));
    }
  }
}

StateId StateSpace::finish_state() {
  if (building_.empty() && !building_accepts_) {
    return kDeadState;
  }
  std::sort(building_.begin(), building_.end());
  std::uint64_t hash = building_accepts_ ? 1 : 2;
  for (const Item& item : building_) {
    hash = mix64(hash ^ hash_of(item));
  }
  const auto range = ids_.equal_range(hash);
  for (auto it = range.first; it != range.second; ++it) {
    const State& other = states_[it->second];
    if (other.accepting == building_accepts_ && other.count == building_.size() &&
        std::equal(building_.begin(), building_.end(), items_.begin() + other.first)) {
      return it->second;
    }
  }
  State state;
  state.first = static_cast<std::uint32_t>(items_.size());
  state.count = static_cast<std::uint32_t>(building_.size());
  state.accepting = building_accepts_;
  for (const Item& item : building_) {
    if (kind_of(item) == kAtNode) {
      const Node& node = graph_->node(id_of(item));
      for (std::uint32_t i = node.first_edge; i < node.first_edge + node.n_edges; ++i) {
        if (graph_->edge(i).kind == EdgeKind::kSpecial) {
          state.specials |= 1U << graph_->edge(i).arg;
        }
      }
    }
  }
  items_.insert(items_.end(), building_.begin(), building_.end());
  states_.push_back(state);
  const auto id = static_cast<StateId>(states_.size() - 1);
  ids_.emplace(hash, id);
  return id;
}

StateId StateSpace::find_move(const State& state, std::uint8_t byte, bool* known) const {
  *known = true;
  if (state.moves >= 0) {
    const StateId to = moves_[static_cast<std::size_t>(state.moves)][byte];
    *known = to != kUnknown;
    return to;
  }
  for (std::uint8_t i = 0; i < state.n_small; ++i) {
    if (state.small_byte[i] == byte) {
      return state.small_to[i];
    }
  }
  *known = false;
  return kDeadState;
}

void StateSpace::keep_move(StateId id, std::uint8_t byte, StateId to) {
  State& state = states_[id];
  if (state.moves < 0 && state.n_small < state.small_byte.size()) {
    state.small_byte[state.n_small] = byte;
    state.small_to[state.n_small++] = to;
    return;
  }
  if (state.moves < 0) {
    state.moves = static_cast<std::int32_t>(moves_.size());
    moves_.emplace_back().fill(kUnknown);
    for (std::uint8_t i = 0; i < state.n_small; ++i) {
      moves_.back()[state.small_byte[i]] = state.small_to[i];
    }
  }
  moves_[static_cast<std::size_t>(state.moves)][byte] = to;
}

StateId StateSpace::step(StateId state, std::uint8_t byte) {
  bool known = false;
  const StateId found = find_move(states_[state], byte, &known);
  if (known || state == kDeadState) {
    return found;
  }
  begin_state();
  const std::uint32_t first = states_[state].first;
  const std::uint32_t count = states_[state].count;
  for (std::uint32_t i = first; i < first + count; ++i) {
    advance(items_[i], byte);
  }
  const StateId to = finish_state();
  keep_move(state, byte, to);
  return to;
}

StateId StateSpace::step_special(StateId state, Role role) {
  if ((states_[state].specials & (1U << static_cast<std::uint32_t>(role))) == 0) {
    return kDeadState;
  }
  begin_state();
  const std::uint32_t first = states_[state].first;
  const std::uint32_t count = states_[state].count;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Item item = items_[i];
    if (kind_of(item) != kAtNode) {
      continue;
    }
    const Node& node = graph_->node(id_of(item));
    for (std::uint32_t e = node.first_edge; e < node.first_edge + node.n_edges; ++e) {
      const Edge& edge = graph_->edge(e);
      if (edge.kind == EdgeKind::kSpecial && edge.arg == static_cast<std::uint32_t>(role)) {
        add_node(item.stack, edge.target, 0);
      }
    }
  }
  return finish_state();
}

StateId StateSpace::step_token(StateId state, std::string_view bytes) {
  for (const char c : bytes) {
    if (state == kDeadState) {
      break;
    }
    state = step(state, static_cast<std::uint8_t>(c));
  }
  return state;
}

void StateSpace::list_item_bytes(const Item& item, std::array<std::uint64_t, 4>* out) const {
  const auto set = [&](std::uint8_t byte) { (*out)[byte / 64U] |= 1ULL << (byte % 64U); };
  const std::uint32_t id = id_of(item);
  if (kind_of(item) == kInLexeme) {
    const Lexeme& lexeme = graph_->lexeme_at(graph_->edge(id).arg);
    for (unsigned b = 0; b < 256; ++b) {
      Lexeme::Position next = item.at;
      if (lexeme.step(&next, static_cast<std::uint8_t>(b)) != Lexeme::Step::kDead) {
        set(static_cast<std::uint8_t>(b));
      }
    }
    return;
  }
  if (kind_of(item) == kInLiteral) {
    set(static_cast<std::uint8_t>(graph_->text(graph_->edge(id))[item.at]));
    return;
  }
  const Node& node = graph_->node(id);
  for (std::uint32_t i = node.first_edge; i < node.first_edge + node.n_edges; ++i) {
    const Edge& edge = graph_->edge(i);
    if (edge.kind == EdgeKind::kByte) {
      for (unsigned b = edge.lo; b <= edge.hi; ++b) {
        set(static_cast<std::uint8_t>(b));
      }
    } else if (edge.kind == EdgeKind::kLiteral) {
      set(static_cast<std::uint8_t>(graph_->text(edge)[0]));
    }
  }
  if (node.blank) {
    for (const char blank : {' ', '\n', '\t'}) {
      const auto byte = static_cast<std::uint8_t>(blank);
      if (blank_next(static_cast<std::uint32_t>(item.at), byte) >= 0) {
        set(byte);
      }
    }
  }
}

const std::array<std::uint64_t, 4>& StateSpace::bytes_of(StateId id) {
  State& state = states_[id];
  if (!state.listed) {
    state.listed = true;
    for (std::uint32_t i = 0; i < state.count; ++i) {
      list_item_bytes(items_[state.first + i], &state.bytes);
    }
  }
  return state.bytes;
}

bool StateSpace::can_continue(StateId state) {
  const std::array<std::uint64_t, 4>& bytes = bytes_of(state);
  return states_[state].specials != 0 || (bytes[0] | bytes[1] | bytes[2] | bytes[3]) != 0;
}

bool StateSpace::only_special(StateId state) {
  const std::array<std::uint64_t, 4>& bytes = bytes_of(state);
  return states_[state].specials != 0 && (bytes[0] | bytes[1] | bytes[2] | bytes[3]) == 0;
}

int StateSpace::only_byte(StateId state) {
  if (states_[state].accepting || states_[state].specials != 0) {
    return -1;
  }
  int only = -1;
  const std::array<std::uint64_t, 4>& bytes = bytes_of(state);
  for (int w = 0; w < 4; ++w) {
    const std::uint64_t word = bytes[static_cast<std::size_t>(w)];
    if (word == 0) {
      continue;
    }
    if (only >= 0 || (word & (word - 1)) != 0) {
      return -1;
    }
    only = w * 64 + __builtin_ctzll(word);
  }
  return only;
}

std::size_t StateSpace::bytes_used() const {
  return states_.size() * (sizeof(State) + 32) + items_.size() * sizeof(Item) +
         frames_.size() * 40 + moves_.size() * sizeof(moves_[0]) +
         (masks_.size() + insides_.size()) * vocabulary_->mask_words() * 4;
}

StateId StateSpace::import(const StateSpace& other, StateId state) {
  std::vector<std::uint32_t> stacks(other.frames_.size(), 0);
  std::vector<bool> known(other.frames_.size(), false);
  known[0] = true;
  const auto stack_of = [&](std::uint32_t stack) {
    std::vector<std::uint32_t> chain;
    while (!known[stack]) {
      chain.push_back(stack);
      stack = other.frames_[stack].parent;
    }
    std::uint32_t here = stacks[stack];
    for (std::size_t i = chain.size(); i-- > 0;) {
      here = push(other.frames_[chain[i]].node, here);
      stacks[chain[i]] = here;
      known[chain[i]] = true;
    }
    return here;
  };
  const State& from = other.states_[state];
  begin_state();
  for (std::uint32_t i = 0; i < from.count; ++i) {
    Item item = other.items_[from.first + i];
    item.stack = stack_of(item.stack);
    building_.push_back(item);
  }
  building_accepts_ = from.accepting;
  return finish_state();
}

}  // namespace tandem::grammar
