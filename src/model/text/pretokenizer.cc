#include "model/text/pretokenizer.h"

#include <array>

#include "model/text/unicode.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

struct Char {
  char32_t code = 0;
  CharClass kind = CharClass::kOther;
  std::size_t length = 0;
};

Char char_at(std::string_view text, std::size_t at) {
  Char c;
  c.code = utf8_read(text.data() + at, c.length);
  c.kind = char_class(c.code);
  return c;
}

bool is_line_end(char32_t code) {
  return code == '\r' || code == '\n';
}

bool is_ascii_letter(char32_t code) {
  return (code | 0x20) >= 'a' && (code | 0x20) <= 'z';
}

// Stage 1 and 2 cut these out of their surroundings.
bool is_cjk(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
}

bool is_word(const Char& c) {
  return c.kind == CharClass::kLetter || c.kind == CharClass::kMark;
}

bool is_sign(const Char& c) {
  return c.kind == CharClass::kPunctuation || c.kind == CharClass::kSymbol;
}

// End of the run of characters from `at` on for which `test` holds.
template <typename Test>
std::size_t run_end(std::string_view text, std::size_t at, std::size_t end, Test test) {
  while (at < end) {
    const Char c = char_at(text, at);
    if (!test(c)) {
      break;
    }
    at += c.length;
  }
  return at;
}

// Alternatives D, E, F at a white-space character: up to the last line end of the run; else the
// run without its last character if something follows; else the run.
std::size_t space_end(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t at = begin;
  std::size_t last_begin = begin;
  std::size_t after_line_end = begin;
  while (at < end) {
    const Char c = char_at(text, at);
    if (c.kind != CharClass::kSpace) {
      break;
    }
    last_begin = at;
    at += c.length;
    if (is_line_end(c.code)) {
      after_line_end = at;
    }
  }
  if (after_line_end > begin) {
    return after_line_end;
  }
  return at < end && last_begin > begin ? last_begin : at;
}

// Alternative C without its optional space.
std::size_t sign_end(std::string_view text, std::size_t at, std::size_t end) {
  at = run_end(text, at, end, is_sign);
  return run_end(text, at, end, [](const Char& c) { return is_line_end(c.code); });
}

}  // namespace

// End of the match of stage 3 that begins exactly at `begin`; `begin` itself if there is none.
std::size_t PieceScanner::match_end(std::size_t begin, std::size_t end) const {
  const Char first = char_at(text_, begin);
  const std::size_t second = begin + first.length;
  if (is_word(first)) {
    return run_end(text_, second, end, is_word);
  }
  const bool has_second = second < end;
  const Char next = has_second ? char_at(text_, second) : Char{};
  if (is_sign(first)) {
    const bool joins_letters = first.code < 0x80 && has_second && is_ascii_letter(next.code);
    return joins_letters
               ? run_end(text_, second, end, [](const Char& c) { return is_ascii_letter(c.code); })
               : sign_end(text_, begin, end);
  }
  if (has_second && is_word(next) && !is_line_end(first.code)) {
    return run_end(text_, second, end, is_word);
  }
  if (first.code == ' ' && has_second && is_sign(next)) {
    return sign_end(text_, second, end);
  }
  return first.kind == CharClass::kSpace ? space_end(text_, begin, end) : begin;
}

// End of the piece of stage 1 and 2 that begins at `begin`.
std::size_t PieceScanner::span_end(std::size_t begin) {
  const Char first = char_at(text_, begin);
  std::size_t at = begin + first.length;
  whole_span_ = first.kind == CharClass::kNumber;
  if (whole_span_) {
    for (int n = 1; n < 3 && at < text_.size(); ++n) {
      const Char c = char_at(text_, at);
      if (c.kind != CharClass::kNumber) {
        break;
      }
      at += c.length;
    }
    return at;
  }
  if (is_cjk(first.code)) {
    return run_end(text_, at, text_.size(), [](const Char& c) { return is_cjk(c.code); });
  }
  return run_end(text_, at, text_.size(),
                 [](const Char& c) { return c.kind != CharClass::kNumber && !is_cjk(c.code); });
}

bool PieceScanner::next(std::string_view& piece) {
  if (at_ == text_.size()) {
    return false;
  }
  if (at_ == span_end_) {
    span_end_ = span_end(at_);
  }
  std::size_t end = whole_span_ ? span_end_ : match_end(at_, span_end_);
  if (end == at_) {
    // No alternative matches here: the gap up to the next match is a piece of its own.
    do {
      end += char_at(text_, end).length;
    } while (end < span_end_ && match_end(end, span_end_) == end);
  }
  piece = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

}  // namespace tandem::text
