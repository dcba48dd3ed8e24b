// StringMasks: for free text inside a JSON string (or raw text) the answer for nearly all tokens
// does not depend on the grammar. It is worked out once per vocabulary: which tokens stay inside,
// how many characters they add, and where tokens leave through the closing quote.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/grammar/lexeme.h"
#include "engine/grammar/vocabulary.h"

namespace tandem::grammar {

// A trie node whose last byte closes the string; what follows in its subtree is outside.
struct StringExit {
  std::uint32_t node;
  std::uint32_t chars;  // characters begun inside before the quote
  std::string inside;   // the bytes before the quote
};

class StringMasks {
 public:
  // Tokens with more characters than this are looked at one by one when a limit is near.
  static constexpr std::uint32_t kMaxChars = 24;

  explicit StringMasks(const Vocabulary& vocabulary);

  // Tokens that stay inside from this body place: [mask_words].
  const std::vector<std::uint32_t>& inside(TextForm form, std::uint8_t place) const {
    return form == TextForm::kQuoted ? quoted_[place].mask : raw_[place].mask;
  }

  const std::vector<StringExit>& exits(std::uint8_t place) const { return quoted_[place].exits; }

  // Ors in the tokens that stay inside from between two characters and begin at most `chars`.
  void add_at_most(TextForm form, std::uint32_t chars, std::vector<std::uint32_t>* mask) const;

  // No token begins more characters than this.
  std::uint32_t max_chars() const { return max_chars_; }

 private:
  struct Place {
    std::vector<std::uint32_t> mask;
    std::vector<StringExit> exits;
  };

  struct Limits {
    std::array<std::vector<std::uint32_t>, kMaxChars + 1> up_to;  // masks by characters
    std::vector<std::pair<std::uint32_t, std::uint32_t>> longer;  // characters, token
  };

  void walk(const Vocabulary& vocabulary, TextForm form, std::uint8_t place, Place* out,
            Limits* limits);

  std::array<Place, body::kCount> quoted_;
  std::array<Place, body::kCount> raw_;
  Limits quoted_limits_;
  Limits raw_limits_;
  std::uint32_t max_chars_ = 0;
};

}  // namespace tandem::grammar
