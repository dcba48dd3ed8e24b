// UTF-8 in and out: reading code points, replacing invalid bytes, assembling a stream.
// Each maximal invalid part becomes one U+FFFD, as Python's errors="replace" and Rust's
// from_utf8_lossy do, so our text equals the reference tokenizer's for any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::text {

// U+FFFD in UTF-8.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Utf8Step {
  char32_t code = 0;       // the code point if valid
  std::size_t length = 0;  // bytes used: of the character, or of the maximal invalid part
  bool valid = false;
  bool incomplete = false;  // the text ends inside a so far valid sequence
};

// Looks at the character that starts at text[at]. REQUIRES: at < text.size().
Utf8Step utf8_step(std::string_view text, std::size_t at);

// The code point and length at a place in text that is known to be valid UTF-8.
inline char32_t utf8_read(const char* p, std::size_t& length) {
  const auto b = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t first = b(0);
  if (first < 0x80) {
    length = 1;
    return first;
  }
  if (first < 0xE0) {
    length = 2;
    return (first & 0x1F) << 6 | (b(1) & 0x3F);
  }
  if (first < 0xF0) {
    length = 3;
    return (first & 0x0F) << 12 | (b(1) & 0x3F) << 6 | (b(2) & 0x3F);
  }
  length = 4;
  return (first & 0x07) << 18 | (b(1) & 0x3F) << 12 | (b(2) & 0x3F) << 6 | (b(3) & 0x3F);
}

// Whether the whole text is valid UTF-8.
bool is_valid_utf8(std::string_view text);

// The text with every maximal invalid part replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Appends a code point in UTF-8. REQUIRES: a Unicode scalar value.
void append_utf8(std::string& out, char32_t code);

// Turns a stream of bytes into complete characters; the bytes of an unfinished one wait.
class Utf8Assembler {
 public:
  // Appends to `out` every character that is complete now.
  void push(std::string_view bytes, std::string& out);

  // Appends U+FFFD for bytes that still wait: nothing more belongs to them.
  void finish(std::string& out);

 private:
  std::string waiting_;
};

}  // namespace tandem::text
