// The token masks of StateSpace: text states from tables, structural states by a walk over the
// trie.
#include <algorithm>

#include "engine/grammar/state_space.h"
#include "engine/grammar/string_masks.h"
#include "foundation/base/random.h"

namespace tandem::grammar {
namespace {

constexpr std::uint32_t kKindShift = 30;
constexpr std::uint32_t kIdMask = (1U << kKindShift) - 1;
constexpr std::uint32_t kInLexeme = 2;
constexpr std::uint32_t kWorthKeeping = 64;  // trie nodes walked before a mask is kept
constexpr std::size_t kMaxKeptMasks = 1024;
constexpr std::size_t kMaxKeptInsides = 512;

}  // namespace

void StateSpace::set_tokens(const TrieNode& node, std::span<std::uint32_t> mask) const {
  const std::uint32_t* values = vocabulary_->trie().values.data() + node.first;
  for (std::uint32_t k = 0; k < node.count; ++k) {
    mask[values[k] / 32] |= 1U << (values[k] % 32);
  }
}

void StateSpace::walk(std::uint32_t begin, std::uint32_t end, StateId from,
                      std::span<std::uint32_t> mask) {
  const TrieNode* nodes = vocabulary_->trie().nodes.data();
  if (begin >= end) {
    return;
  }
  const std::uint32_t base = nodes[begin].depth - 1U;
  path_.resize(vocabulary_->trie().max_depth + 1);
  path_[base] = from;
  bytes_of(from);
  for (std::uint32_t i = begin; i < end;) {
    const TrieNode& node = nodes[i];
    const StateId before = path_[node.depth - 1U];
    if ((states_[before].bytes[node.byte / 64U] >> (node.byte % 64U) & 1U) == 0) {
      i += node.subtree;
      continue;
    }
    ++walked_;
    const StateId now = step(before, node.byte);
    if (now == kDeadState) {
      i += node.subtree;
      continue;
    }
    set_tokens(node, mask);
    if (node.subtree > 1) {
      bytes_of(now);
      path_[node.depth] = now;
    }
    ++i;
  }
}

StateSpace::Residual StateSpace::split(StateId state) {
  Residual out;
  const std::uint32_t first = states_[state].first;
  const std::uint32_t count = states_[state].count;
  std::vector<Item> rest;
  for (std::uint32_t i = first; i < first + count; ++i) {
    const Item& item = items_[i];
    bool in_text = false;
    if (item.where >> kKindShift == kInLexeme) {
      const Lexeme& lexeme = graph_->lexeme_at(graph_->edge(item.where & kIdMask).arg);
      std::uint32_t left = 0;
      in_text = lexeme.form() == TextForm::kQuoted ||
                (lexeme.is_free(item.at, &left) && Lexeme::place(item.at) == body::kBetween);
    }
    (in_text ? out.strings : rest).push_back(item);
  }
  if (out.strings.empty()) {
    out.state = state;
  } else if (!rest.empty()) {
    begin_state();
    building_ = std::move(rest);
    out.state = finish_state();
  }
  return out;
}

// The state right behind the edge that the item is in.
StateId StateSpace::after_edge(const Item& item) {
  begin_state();
  add_node(item.stack, graph_->edge(item.where & kIdMask).target, 0);
  return finish_state();
}

StateSpace::Inside StateSpace::compute_inside(const Lexeme& lexeme,
                                              Lexeme::Position position) const {
  Inside out;
  const StringMasks& strings = vocabulary_->string_masks();
  std::uint32_t left = 0;
  const bool free = lexeme.is_free(position, &left);
  const bool bounded = left < strings.max_chars();
  const auto add_exits = [&] {
    for (const StringExit& exit : strings.exits(Lexeme::place(position))) {
      Lexeme::Position at = position;
      Lexeme::Step step = Lexeme::Step::kAlive;
      for (const char c : exit.inside) {
        step = lexeme.step(&at, static_cast<std::uint8_t>(c));
        if (step != Lexeme::Step::kAlive) {
          break;
        }
      }
      if (step == Lexeme::Step::kAlive && lexeme.step(&at, '"') == Lexeme::Step::kDone) {
        out.exits.push_back(exit.node);
      }
    }
  };
  if ((free && !bounded) || lexeme.is_total(position)) {
    out.mask = strings.inside(TextForm::kQuoted, Lexeme::place(position));
    add_exits();
    return out;
  }
  out.mask.assign(vocabulary_->mask_words(), 0);
  if (free && Lexeme::place(position) == body::kBetween) {
    strings.add_at_most(TextForm::kQuoted, left, &out.mask);
    add_exits();
    return out;
  }
  const std::vector<TrieNode>& nodes = vocabulary_->trie().nodes;
  std::vector<Lexeme::Position> path(vocabulary_->trie().max_depth + 1);
  path[0] = position;
  for (std::uint32_t i = 0; i < nodes.size();) {
    const TrieNode& node = nodes[i];
    Lexeme::Position at = path[node.depth - 1U];
    const Lexeme::Step step = lexeme.step(&at, node.byte);
    if (step == Lexeme::Step::kAlive) {
      path[node.depth] = at;
      set_tokens(node, out.mask);
      ++i;
      continue;
    }
    if (step == Lexeme::Step::kDone) {
      out.exits.push_back(i);
    }
    i += node.subtree;
  }
  return out;
}

const StateSpace::Inside& StateSpace::inside_of(std::uint32_t lexeme_id,
                                                Lexeme::Position position) {
  const std::uint64_t key = mix64(position) ^ (std::uint64_t{lexeme_id} << 1);
  auto it = insides_.find(key);
  if (it == insides_.end() || it->second.lexeme != lexeme_id || it->second.position != position) {
    if (insides_.size() >= kMaxKeptInsides) {
      insides_.clear();
    }
    Inside made = compute_inside(graph_->lexeme_at(lexeme_id), position);
    made.lexeme = lexeme_id;
    made.position = position;
    it = insides_.insert_or_assign(key, std::move(made)).first;
  }
  return it->second;
}

void StateSpace::add_string_item(const Item& item, std::span<std::uint32_t> mask) {
  const std::uint32_t lexeme_id = graph_->edge(item.where & kIdMask).arg;
  const Lexeme& lexeme = graph_->lexeme_at(lexeme_id);
  const StringMasks& strings = vocabulary_->string_masks();
  if (lexeme.form() == TextForm::kRaw) {
    std::uint32_t left = 0;
    lexeme.is_free(item.at, &left);
    if (left >= strings.max_chars()) {
      const std::vector<std::uint32_t>& all = strings.inside(TextForm::kRaw, body::kBetween);
      for (std::size_t w = 0; w < mask.size(); ++w) {
        mask[w] |= all[w];
      }
    } else {
      std::vector<std::uint32_t> some(mask.size(), 0);
      strings.add_at_most(TextForm::kRaw, left, &some);
      for (std::size_t w = 0; w < mask.size(); ++w) {
        mask[w] |= some[w];
      }
    }
    return;
  }
  const Inside& inside = inside_of(lexeme_id, item.at);
  for (std::size_t w = 0; w < mask.size(); ++w) {
    mask[w] |= inside.mask[w];
  }
  if (inside.exits.empty()) {
    return;
  }
  const StateId after = after_edge(item);
  const std::vector<TrieNode>& nodes = vocabulary_->trie().nodes;
  for (const std::uint32_t exit : inside.exits) {
    set_tokens(nodes[exit], mask);
    if (nodes[exit].subtree > 1) {
      walk(exit + 1, exit + nodes[exit].subtree, after, mask);
    }
  }
}

void StateSpace::fill_mask(StateId id, std::span<std::uint32_t> mask) {
  if (states_[id].mask >= 0) {
    const std::vector<std::uint32_t>& kept = masks_[static_cast<std::size_t>(states_[id].mask)];
    std::copy(kept.begin(), kept.end(), mask.begin());
    return;
  }
  std::fill(mask.begin(), mask.end(), 0U);
  walked_ = 0;
  const Residual parts = split(id);
  for (const Item& item : parts.strings) {
    add_string_item(item, mask);
  }
  if (parts.state != kDeadState) {
    walk(0, static_cast<std::uint32_t>(vocabulary_->trie().nodes.size()), parts.state, mask);
  }
  if ((states_[id].specials & (1U << static_cast<std::uint32_t>(Role::kDsml))) != 0) {
    const auto token = static_cast<std::uint32_t>(vocabulary_->roles().dsml);
    mask[token / 32] |= 1U << (token % 32);
  }
  if (walked_ > kWorthKeeping && masks_.size() < kMaxKeptMasks) {
    states_[id].mask = static_cast<std::int32_t>(masks_.size());
    masks_.emplace_back(mask.begin(), mask.end());
  }
}

void StateSpace::fill_mask_slowly(StateId state, std::span<std::uint32_t> mask) {
  std::fill(mask.begin(), mask.end(), 0U);
  for (int t = 0; t < vocabulary_->size(); ++t) {
    const std::string_view bytes = vocabulary_->bytes(t);
    if (!bytes.empty() && step_token(state, bytes) != kDeadState) {
      mask[static_cast<std::size_t>(t) / 32] |= 1U << (t % 32);
    }
  }
  if (step_special(state, Role::kDsml) != kDeadState) {
    const auto token = static_cast<std::uint32_t>(vocabulary_->roles().dsml);
    mask[token / 32] |= 1U << (token % 32);
  }
}

}  // namespace tandem::grammar
