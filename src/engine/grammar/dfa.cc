#include "engine/grammar/dfa.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "foundation/base/random.h"

namespace tandem::grammar {

std::uint32_t Nfa::add_node() {
  nodes.emplace_back();
  return static_cast<std::uint32_t>(nodes.size() - 1);
}

void Nfa::add_move(std::uint32_t from, std::uint8_t lo, std::uint8_t hi, std::uint32_t to) {
  nodes[from].moves.push_back({to, lo, hi});
}

void Nfa::add_empty(std::uint32_t from, std::uint32_t to, When when) {
  nodes[from].empties.push_back({to, when});
}

namespace {

struct Utf8 {
  std::array<std::uint8_t, 4> bytes;
  int size;
};

Utf8 encode(std::uint32_t c) {
  const auto tail = [&](int shift) {
    return static_cast<std::uint8_t>(0x80 | ((c >> shift) & 0x3F));
  };
  if (c < 0x80) {
    return {{static_cast<std::uint8_t>(c), 0, 0, 0}, 1};
  }
  if (c < 0x800) {
    return {{static_cast<std::uint8_t>(0xC0 | (c >> 6)), tail(0), 0, 0}, 2};
  }
  if (c < 0x10000) {
    return {{static_cast<std::uint8_t>(0xE0 | (c >> 12)), tail(6), tail(0), 0}, 3};
  }
  return {{static_cast<std::uint8_t>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)}, 4};
}

// Adds lo..hi, both of `size` bytes, splitting until each byte position is an independent range.
void add_same_length(Nfa* nfa, std::uint32_t from, std::uint32_t lo, std::uint32_t hi,
                     std::uint32_t to) {
  const Utf8 a = encode(lo);
  const Utf8 b = encode(hi);
  for (int tail = 1; tail < a.size; ++tail) {
    const std::uint32_t block = (1U << (6 * tail)) - 1;
    if ((lo & ~block) != (hi & ~block)) {
      if ((lo & block) != 0) {
        add_same_length(nfa, from, lo, lo | block, to);
        add_same_length(nfa, from, (lo | block) + 1, hi, to);
        return;
      }
      if ((hi & block) != block) {
        add_same_length(nfa, from, lo, (hi & ~block) - 1, to);
        add_same_length(nfa, from, hi & ~block, hi, to);
        return;
      }
    }
  }
  std::uint32_t node = from;
  for (int i = 0; i < a.size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::uint32_t next = i + 1 == a.size ? to : nfa->add_node();
    nfa->add_move(node, a.bytes[at], b.bytes[at], next);
    node = next;
  }
}

std::uint64_t hash_set(const std::vector<std::uint32_t>& set) {
  std::uint64_t hash = set.size();
  for (const std::uint32_t x : set) {
    hash = mix64(hash ^ x);
  }
  return hash;
}

struct SetHash {
  std::size_t operator()(const std::vector<std::uint32_t>& set) const { return hash_set(set); }
};

// Splits the bytes into classes that no move of the automaton tells apart.
std::size_t byte_classes(const Nfa& nfa, std::array<std::uint8_t, 256>* class_of,
                         std::vector<std::uint8_t>* samples) {
  std::array<bool, 257> cut{};
  cut[0] = true;
  for (const Nfa::Node& node : nfa.nodes) {
    for (const Nfa::Move& move : node.moves) {
      cut[move.lo] = true;
      cut[move.hi + 1U] = true;
    }
  }
  for (std::size_t b = 0; b < 256; ++b) {
    if (cut[b]) {
      samples->push_back(static_cast<std::uint8_t>(b));
    }
    (*class_of)[b] = static_cast<std::uint8_t>(samples->size() - 1);
  }
  return samples->size();
}

class Subsets {
 public:
  explicit Subsets(const Nfa& nfa) : nfa_(nfa), mark_(nfa.nodes.size(), 0) {}

  // Follows the empty moves that hold at this place; the result is sorted. A set that reached the
  // sink is the sink alone.
  std::vector<std::uint32_t> close(std::vector<std::uint32_t> set, bool at_begin, bool at_end) {
    ++epoch_;
    std::vector<std::uint32_t> out;
    for (const std::uint32_t node : set) {
      visit(node, &out);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const Nfa::Empty& e : nfa_.nodes[out[i]].empties) {
        if (e.when == Nfa::When::kAlways || (e.when == Nfa::When::kAtBegin && at_begin) ||
            (e.when == Nfa::When::kAtEnd && at_end)) {
          visit(e.target, &out);
        }
      }
    }
    if (nfa_.sink && mark_[*nfa_.sink] == epoch_) {
      return {*nfa_.sink};
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  bool accepting(const std::vector<std::uint32_t>& set, bool at_begin) {
    const std::vector<std::uint32_t> last = close(set, at_begin, true);
    return std::binary_search(last.begin(), last.end(), nfa_.accept) ||
           (nfa_.sink && std::binary_search(last.begin(), last.end(), *nfa_.sink));
  }

  std::vector<std::uint32_t> move(const std::vector<std::uint32_t>& set, std::uint8_t byte) {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t node : set) {
      for (const Nfa::Move& m : nfa_.nodes[node].moves) {
        if (m.lo <= byte && byte <= m.hi) {
          out.push_back(m.target);
        }
      }
    }
    return out;
  }

 private:
  void visit(std::uint32_t node, std::vector<std::uint32_t>* out) {
    if (mark_[node] != epoch_) {
      mark_[node] = epoch_;
      out->push_back(node);
    }
  }

  const Nfa& nfa_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t epoch_ = 0;
};

}  // namespace

void Nfa::add_code_points(std::uint32_t from, std::uint32_t lo, std::uint32_t hi,
                          std::uint32_t to) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kPlanes[] = {
      {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, 0x10FFFF}};
  for (const auto& [first, last] : kPlanes) {
    const std::uint32_t a = std::max(lo, first);
    const std::uint32_t b = std::min(hi, last);
    if (a <= b) {
      add_same_length(this, from, a, b, to);
    }
  }
}

bool Dfa::contains(std::string_view text) const {
  State state = start_;
  for (const char c : text) {
    state = next(state, static_cast<std::uint8_t>(c));
  }
  return accepts(state);
}

std::optional<Dfa> Dfa::from_nfa(const Nfa& nfa, std::size_t max_states) {
  Dfa out;
  std::vector<std::uint8_t> samples;
  out.n_classes_ = byte_classes(nfa, &out.class_of_, &samples);
  Subsets subsets(nfa);
  std::unordered_map<std::vector<std::uint32_t>, State, SetHash> ids;
  std::vector<std::vector<std::uint32_t>> sets{{}, subsets.close({nfa.start}, true, false)};
  // The first set is not entered in `ids`: only there do the begin-conditions hold.
  ids.emplace(sets[0], kDead);
  out.accepting_ = {0, subsets.accepting(sets[1], true)};
  out.start_ = 1;
  out.table_.assign(2 * out.n_classes_, kDead);
  for (State state = 1; state < sets.size(); ++state) {
    for (std::size_t c = 0; c < out.n_classes_; ++c) {
      std::vector<std::uint32_t> target =
          subsets.close(subsets.move(sets[state], samples[c]), false, false);
      const auto [it, added] = ids.emplace(std::move(target), static_cast<State>(sets.size()));
      if (added) {
        if (sets.size() > max_states) {
          return std::nullopt;
        }
        sets.push_back(it->first);
        out.accepting_.push_back(subsets.accepting(it->first, false));
        out.table_.resize(out.table_.size() + out.n_classes_, kDead);
      }
      out.table_[state * out.n_classes_ + c] = it->second;
    }
  }
  out.trim();
  return out;
}

std::optional<Dfa> Dfa::product(const Dfa& a, const Dfa& b, Op op, std::size_t max_states) {
  Dfa out;
  std::map<std::pair<std::uint8_t, std::uint8_t>, std::uint8_t> classes;
  std::vector<std::pair<std::uint8_t, std::uint8_t>> samples;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::pair<std::uint8_t, std::uint8_t> key(a.class_of_[byte], b.class_of_[byte]);
    const auto [it, added] = classes.emplace(key, static_cast<std::uint8_t>(samples.size()));
    if (added) {
      samples.push_back(key);
    }
    out.class_of_[byte] = it->second;
  }
  out.n_classes_ = samples.size();
  std::unordered_map<std::uint64_t, State> ids;
  std::vector<State> left_behind(a.size(), kDead);  // ids of (x, dead)
  std::vector<std::pair<State, State>> pairs{{kDead, kDead}};
  out.accepting_ = {0};
  out.table_.assign(out.n_classes_, kDead);
  const auto id_of = [&](State x, State y) -> State {
    if (x == kDead || (op == Op::kAnd && y == kDead)) {
      return kDead;
    }
    // Most moves leave the second automaton for good: those ids need no hashing.
    State* const direct = y == kDead ? &left_behind[x] : nullptr;
    if (direct != nullptr && *direct != kDead) {
      return *direct;
    }
    const auto [it, added] =
        ids.emplace((std::uint64_t{x} << 32) | y, static_cast<State>(pairs.size()));
    if (direct != nullptr) {
      *direct = it->second;
    }
    if (added) {
      pairs.emplace_back(x, y);
      out.accepting_.push_back(a.accepts(x) && (b.accepts(y) == (op == Op::kAnd)));
      out.table_.resize(out.table_.size() + out.n_classes_, kDead);
    }
    return it->second;
  };
  out.start_ = id_of(a.start_, b.start_);
  for (State state = 1; state < pairs.size(); ++state) {
    const std::pair<State, State> pair = pairs[state];
    for (std::size_t c = 0; c < out.n_classes_; ++c) {
      const State target = id_of(a.next_class(pair.first, samples[c].first),
                                 b.next_class(pair.second, samples[c].second));
      out.table_[state * out.n_classes_ + c] = target;
    }
    if (pairs.size() > max_states) {
      return std::nullopt;
    }
  }
  out.trim();
  return out;
}

Dfa Dfa::literals(const std::vector<std::string>& texts) {
  Dfa out;
  std::array<bool, 256> used{};
  for (const std::string& text : texts) {
    for (const char c : text) {
      used[static_cast<std::uint8_t>(c)] = true;
    }
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (used[byte]) {
      out.class_of_[byte] = static_cast<std::uint8_t>(out.n_classes_++);
    }
  }
  if (out.n_classes_ > 255) {
    out.n_classes_ = 256;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      out.class_of_[byte] = static_cast<std::uint8_t>(byte);
    }
  }
  out.table_.assign(2 * out.n_classes_, kDead);
  out.accepting_ = {0, 0};
  out.start_ = 1;
  for (const std::string& text : texts) {
    State state = out.start_;
    for (const char c : text) {
      const std::size_t at = state * out.n_classes_ + out.class_of_[static_cast<std::uint8_t>(c)];
      if (out.table_[at] == kDead) {
        out.table_[at] = static_cast<State>(out.accepting_.size());
        out.accepting_.push_back(0);
        out.table_.resize(out.table_.size() + out.n_classes_, kDead);
      }
      state = out.table_[at];
    }
    out.accepting_[state] = 1;
  }
  out.trim();
  return out;
}

const std::shared_ptr<const Dfa>& Dfa::any_text() {
  static const std::shared_ptr<const Dfa> any = [] {
    Nfa nfa;
    nfa.start = nfa.accept = nfa.add_node();
    nfa.add_code_points(nfa.start, 0, 0x10FFFF, nfa.start);
    return std::make_shared<const Dfa>(*from_nfa(nfa, 100));
  }();
  return any;
}

void Dfa::trim() {
  const std::size_t n = size();
  std::vector<std::uint32_t> first(n + 1, 0);
  for (const State target : table_) {
    ++first[target];
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& x : first) {
    sum += std::exchange(x, sum);
  }
  std::vector<State> sources(table_.size());
  std::vector<std::uint32_t> at(first.begin(), first.end());
  for (std::size_t i = 0; i < table_.size(); ++i) {
    sources[at[table_[i]]++] = static_cast<State>(i / n_classes_);
  }
  std::vector<std::uint8_t> live(accepting_);
  std::vector<State> todo;
  for (State s = 0; s < n; ++s) {
    if (live[s] != 0) {
      todo.push_back(s);
    }
  }
  while (!todo.empty()) {
    const State s = todo.back();
    todo.pop_back();
    for (std::uint32_t i = first[s]; i < first[s + 1]; ++i) {
      if (live[sources[i]] == 0 && sources[i] != kDead) {
        live[sources[i]] = 1;
        todo.push_back(sources[i]);
      }
    }
  }
  for (State& target : table_) {
    if (live[target] == 0) {
      target = kDead;
    }
  }
  if (live[start_] == 0) {
    start_ = kDead;
  }
}

Dfa::State Dfa::Builder::add_state(bool accepting) {
  rows_.emplace_back();
  accepting_.push_back(accepting);
  return static_cast<State>(rows_.size() - 1);
}

void Dfa::Builder::set(State from, std::uint8_t byte, State to) {
  rows_[from][byte] = to;
}

Dfa Dfa::Builder::build(State start) && {
  Dfa out;
  std::map<std::vector<State>, std::uint8_t> columns;
  std::vector<std::uint8_t> samples;
  std::vector<State> column(rows_.size());
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      column[s] = rows_[s][byte];
    }
    const auto [it, added] = columns.emplace(column, static_cast<std::uint8_t>(samples.size()));
    if (added) {
      samples.push_back(static_cast<std::uint8_t>(byte));
    }
    out.class_of_[byte] = it->second;
  }
  out.n_classes_ = samples.size();
  out.table_.resize(rows_.size() * out.n_classes_);
  for (std::size_t s = 0; s < rows_.size(); ++s) {
    for (std::size_t c = 0; c < out.n_classes_; ++c) {
      out.table_[s * out.n_classes_ + c] = rows_[s][samples[c]];
    }
  }
  out.accepting_ = std::move(accepting_);
  out.start_ = start;
  out.trim();
  return out;
}

}  // namespace tandem::grammar
