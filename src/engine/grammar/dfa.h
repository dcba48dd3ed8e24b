// Dfa: explicit automata over bytes, the common form of patterns, formats, number ranges and key
// sets. They speak about plain text (UTF-8); JSON escaping is laid over them by lexeme.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::grammar {

// A byte-level nondeterministic automaton, the input of the subset construction.
struct Nfa {
  enum class When : std::uint8_t { kAlways, kAtBegin, kAtEnd };  // condition of an empty move

  struct Move {
    std::uint32_t target;
    std::uint8_t lo, hi;
  };

  struct Empty {
    std::uint32_t target;
    When when;
  };

  struct Node {
    std::vector<Move> moves;
    std::vector<Empty> empties;
  };

  std::vector<Node> nodes;
  std::uint32_t start = 0;
  std::uint32_t accept = 0;
  // If set, every text that reaches this node is accepted whatever follows (an unanchored tail).
  std::optional<std::uint32_t> sink;

  std::uint32_t add_node();
  void add_move(std::uint32_t from, std::uint8_t lo, std::uint8_t hi, std::uint32_t to);
  void add_empty(std::uint32_t from, std::uint32_t to, When when = When::kAlways);
  // All UTF-8 encodings of the code points lo..hi (surrogates left out).
  void add_code_points(std::uint32_t from, std::uint32_t lo, std::uint32_t hi, std::uint32_t to);
};

class Dfa {
 public:
  using State = std::uint32_t;
  static constexpr State kDead = 0;

  // What a product keeps: texts in both, or texts in the first and not in the second.
  enum class Op { kAnd, kMinus };

  State start() const { return start_; }

  State next(State state, std::uint8_t byte) const {
    return table_[state * n_classes_ + class_of_[byte]];
  }

  bool accepts(State state) const { return accepting_[state] != 0; }

  std::size_t size() const { return accepting_.size(); }

  bool empty() const { return start_ == kDead; }

  bool contains(std::string_view text) const;

  const std::array<std::uint8_t, 256>& classes() const { return class_of_; }

  int class_count() const { return static_cast<int>(n_classes_); }

  State next_class(State state, int byte_class) const {
    return table_[state * n_classes_ + static_cast<std::size_t>(byte_class)];
  }

  // The subset construction; nothing if it needs more than max_states.
  static std::optional<Dfa> from_nfa(const Nfa& nfa, std::size_t max_states);
  static std::optional<Dfa> product(const Dfa& a, const Dfa& b, Op op, std::size_t max_states);
  // Exactly these texts.
  static Dfa literals(const std::vector<std::string>& texts);
  // Every valid UTF-8 text.
  static const std::shared_ptr<const Dfa>& any_text();

  // Builds a table by hand: rows of 256 targets. The caller's state 0 must be dead.
  class Builder {
   public:
    State add_state(bool accepting);
    void set(State from, std::uint8_t byte, State to);
    Dfa build(State start) &&;

   private:
    std::vector<std::array<State, 256>> rows_{std::array<State, 256>{}};
    std::vector<std::uint8_t> accepting_{0};
  };

 private:
  // Sends every state from which nothing is accepted to kDead.
  void trim();

  std::array<std::uint8_t, 256> class_of_{};
  std::size_t n_classes_ = 1;
  std::vector<State> table_;
  std::vector<std::uint8_t> accepting_;
  State start_ = kDead;
};

using DfaPtr = std::shared_ptr<const Dfa>;

inline constexpr std::size_t kMaxDfaStates = 20000;

}  // namespace tandem::grammar
