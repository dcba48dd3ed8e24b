// Lexeme: one terminal of a grammar, a text between two structural places: the inside of a JSON
// string, a number, a raw tool parameter. It lays JSON escaping and length limits over a Dfa
// without multiplying the automata out, and guarantees that every live state can still reach its
// end.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "engine/grammar/dfa.h"

namespace tandem::grammar {

enum class TextForm : std::uint8_t {
  kQuoted,  // JSON string content and its closing quote
  kRaw,     // the bytes themselves; ends wherever the automaton accepts
};

inline constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

// Where a walk through text stands between bytes: UTF-8 tails, escapes. 0 = between characters.
namespace body {
inline constexpr std::uint8_t kBetween = 0;
inline constexpr std::uint8_t kCount = 22;
inline constexpr std::uint8_t kDead = 0xFF;
inline constexpr std::uint8_t kClosed = 0xFE;
// Next place for any text inside a JSON string (quotes and escapes) or raw (UTF-8 only).
std::uint8_t next(TextForm form, std::uint8_t place, std::uint8_t byte);
}  // namespace body

class Lexeme {
 public:
  enum class Step : std::uint8_t { kDead, kAlive, kDone };

  // A position: body place, character count, automaton state, partly read \u escape.
  using Position = std::uint64_t;

  // `dfa` null means any text; lengths count code points. Nothing if no text satisfies it or the
  // limits are too large to be counted.
  static std::optional<Lexeme> create(TextForm form, DfaPtr dfa, std::uint32_t min_chars = 0,
                                      std::uint32_t max_chars = kNoLimit);

  TextForm form() const { return form_; }

  Position start() const;

  // Moves over one byte. kDone: the closing quote was read (quoted form only).
  Step step(Position* position, std::uint8_t byte) const;

  // Raw form: the text may end here.
  bool accepts(Position position) const;

  // Any text may follow, as far as the characters are concerned: the position behaves like plain
  // free text except for the number of characters left (kNoLimit if there is no maximum).
  bool is_free(Position position, std::uint32_t* chars_left) const;

  // Whatever token is read without the closing quote, the position stays alive: the tokens that
  // stay inside are those of free text, although the closing quote may be refused.
  bool is_total(Position position) const;

  // Body place of a position.
  static std::uint8_t place(Position position) { return position & 31U; }

 private:
  Lexeme() = default;

  bool counting() const { return max_ != kNoLimit || min_ > 0; }
  Step step_free(Position* position, std::uint8_t byte) const;
  Step step_dfa(Position* position, std::uint8_t byte) const;
  Step step_escape(Position* position, std::uint8_t byte) const;
  Step land(Position* position, Dfa::State state, std::uint32_t count) const;
  bool live(Dfa::State state, std::uint32_t count) const;
  std::uint32_t counted(std::uint32_t count) const;
  void measure_lengths();
  void measure_totals();

  TextForm form_ = TextForm::kRaw;
  DfaPtr dfa_;
  std::uint32_t min_ = 0;
  std::uint32_t max_ = kNoLimit;
  // Per automaton state, characters to the nearest and farthest end (kNoLimit = unbounded).
  std::vector<std::uint32_t> shortest_;
  std::vector<std::uint32_t> longest_;
  std::vector<std::vector<bool>> lengths_;  // exact, only if both limits can matter
  std::vector<std::uint8_t> total_;         // 1 = total, 2 = also accepts everything from here
};

}  // namespace tandem::grammar
