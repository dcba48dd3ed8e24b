// Pre-tokeniser: cuts text into the pieces inside which BPE merges. SOURCE: model.md 5.1.
// The reference applies three regular expressions one after the other, each to every piece of the
// one before. A hand-written scanner does the same in one pass; the patterns stand here so that
// load() can refuse a tokenizer.json with others.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem::text {

inline constexpr std::string_view kNumberPattern = R"(\p{N}{1,3})";
inline constexpr std::string_view kCjkPattern = "[一-龥\u3040-ゟ゠-ヿ]+";
inline constexpr std::string_view kWordPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    "[^\r\n"
    R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
    "\r\n"
    R"(]*|\s*[)"
    "\r\n"
    R"(]+|\s+(?!\S)|\s+)";

// Yields the pieces of one text from left to right; together they are the text.
class PieceScanner {
 public:
  // REQUIRES: valid UTF-8 that outlives the scanner.
  explicit PieceScanner(std::string_view text) : text_(text) {}

  // The next piece; false at the end.
  bool next(std::string_view& piece);

 private:
  std::size_t span_end(std::size_t begin);
  std::size_t match_end(std::size_t begin, std::size_t end) const;

  std::string_view text_;
  std::size_t at_ = 0;        // start of the next piece
  std::size_t span_end_ = 0;  // end of the stage 1 and 2 piece that at_ lies in
  bool whole_span_ = false;   // that piece is a number: stage 3 cannot cut it
};

}  // namespace tandem::text
