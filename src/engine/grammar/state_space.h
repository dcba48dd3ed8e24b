// StateSpace: the lazily determinised pushdown automaton of one grammar. A state is the set of all
// places (with their return stacks) where the text read so far can stand; states, stacks, moves and
// masks are interned, so that whatever was worked out once is a table look-up afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/grammar/graph.h"
#include "engine/grammar/vocabulary.h"

namespace tandem::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kDeadState = 0;

// One place: a node (with white space read before it), or inside a literal or lexeme edge.
struct Item {
  std::uint32_t stack;  // interned return stack, 0 = none
  std::uint32_t where;  // kind in the upper two bits, node or edge below
  std::uint64_t at;     // white space, bytes of the literal read, or lexeme position

  bool operator==(const Item& other) const {
    return stack == other.stack && where == other.where && at == other.at;
  }

  bool operator<(const Item& other) const {
    return stack != other.stack   ? stack < other.stack
           : where != other.where ? where < other.where
                                  : at < other.at;
  }
};

// Not thread-safe: callers hold mutex() around every other call.
class StateSpace {
 public:
  StateSpace(std::shared_ptr<const Graph> graph, std::shared_ptr<const Vocabulary> vocabulary);

  std::mutex& mutex() { return mutex_; }

  StateId start() const { return start_; }

  // The state after one byte, or kDeadState.
  StateId step(StateId state, std::uint8_t byte);

  // The state after a special token, or kDeadState.
  StateId step_special(StateId state, Role role);

  // The state after an ordinary token, or kDeadState.
  StateId step_token(StateId state, std::string_view bytes);

  // The text may end here.
  bool accepting(StateId state) const { return states_[state].accepting; }

  // The text may go on here.
  bool can_continue(StateId state);

  // No byte may come next, but a special token may.
  bool only_special(StateId state);

  // The only byte that may come next if the text cannot end here, else -1.
  int only_byte(StateId state);

  // Writes which ordinary and special tokens may come next; end-of-sequence tokens are the
  // caller's.
  void fill_mask(StateId state, std::span<std::uint32_t> mask);

  // The same by trying every token on its own: slow, for tests.
  void fill_mask_slowly(StateId state, std::span<std::uint32_t> mask);

  // What the tables hold; a space over its limit is replaced by a fresh one.
  std::size_t bytes_used() const;

  // The state of `other` in this space.
  StateId import(const StateSpace& other, StateId state);

 private:
  struct State {
    std::uint32_t first = 0;  // items_
    std::uint32_t count = 0;
    std::uint32_t specials = 0;  // bit per role
    std::int32_t moves = -1;     // row of 256 in moves_, once it is worth it
    std::int32_t mask = -1;      // masks_
    bool accepting = false;
    bool listed = false;  // bytes is filled in
    std::uint8_t n_small = 0;
    std::array<std::uint8_t, 4> small_byte{};
    std::array<StateId, 4> small_to{};
    std::array<std::uint64_t, 4> bytes{};  // which bytes lead on
  };

  struct Frame {
    NodeId node;
    std::uint32_t parent;
  };

  // Where the tokens of one lexeme position end up: those that stay inside, and the trie nodes
  // after which the rest of a token is outside.
  struct Inside {
    std::vector<std::uint32_t> mask;
    std::vector<std::uint32_t> exits;
    std::uint32_t lexeme = 0;
    Lexeme::Position position = 0;
  };

  // Building a state.
  void begin_state();
  bool first_visit(const Item& item);
  void add_node(std::uint32_t stack, NodeId node, std::uint32_t blanks);
  void advance(const Item& item, std::uint8_t byte);
  void advance_lexeme(std::uint32_t stack, std::uint32_t edge, Lexeme::Position position,
                      std::uint8_t byte);
  StateId finish_state();
  std::uint32_t push(NodeId node, std::uint32_t parent);

  const std::array<std::uint64_t, 4>& bytes_of(StateId state);
  void list_item_bytes(const Item& item, std::array<std::uint64_t, 4>* out) const;
  StateId find_move(const State& state, std::uint8_t byte, bool* known) const;
  void keep_move(StateId state, std::uint8_t byte, StateId to);

  // Masks.
  struct Residual {
    StateId state = kDeadState;  // the items that need a walk over the whole trie
    std::vector<Item> strings;   // the items inside text, answered from tables
  };

  Residual split(StateId state);
  void add_string_item(const Item& item, std::span<std::uint32_t> mask);
  const Inside& inside_of(std::uint32_t lexeme, Lexeme::Position position);
  Inside compute_inside(const Lexeme& lexeme, Lexeme::Position position) const;
  void walk(std::uint32_t begin, std::uint32_t end, StateId from, std::span<std::uint32_t> mask);
  void set_tokens(const TrieNode& node, std::span<std::uint32_t> mask) const;
  StateId after_edge(const Item& item);

  std::mutex mutex_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<State> states_;
  std::vector<Item> items_;
  std::vector<Frame> frames_;
  std::vector<std::array<StateId, 256>> moves_;
  std::vector<std::vector<std::uint32_t>> masks_;
  std::unordered_multimap<std::uint64_t, StateId> ids_;
  std::unordered_map<std::uint64_t, std::uint32_t> frame_ids_;
  std::unordered_map<std::uint64_t, Inside> insides_;
  StateId start_ = kDeadState;

  // The state under construction.
  std::vector<Item> building_;
  bool building_accepts_ = false;
  std::vector<Item> pending_;
  std::vector<Item> seen_items_;  // open addressing; a slot counts if it has the current epoch
  std::vector<std::uint32_t> seen_epoch_;
  std::uint32_t epoch_ = 0;
  std::size_t seen_count_ = 0;

  std::vector<StateId> path_;  // of the walk over the trie
  std::uint32_t walked_ = 0;   // trie nodes entered for the current mask
};

}  // namespace tandem::grammar
