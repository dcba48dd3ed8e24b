// The scanner against the same patterns run by PCRE2, stage after stage, and UTF-8 reading.
#include "model/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>

#include <memory>
#include <string>
#include <vector>

#include "foundation/base/random.h"
#include "model/text/unicode.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

using Pieces = std::vector<std::string>;

class Regex {
 public:
  explicit Regex(std::string_view pattern) {
    int error = 0;
    std::size_t offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
    EXPECT_NE(code_, nullptr) << pattern << " at " << offset;
    match_ = pcre2_match_data_create_from_pattern(code_, nullptr);
  }

  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  ~Regex() {
    pcre2_match_data_free(match_);
    pcre2_code_free(code_);
  }

  // "Isolated": matches and the gaps between them.
  void split(const std::string& text, Pieces& out) const {
    std::size_t at = 0;
    while (at < text.size() && pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                           text.size(), at, 0, match_, nullptr) > 0) {
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match_);
      if (bounds[0] > at) {
        out.push_back(text.substr(at, bounds[0] - at));
      }
      out.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
      at = bounds[1];
    }
    if (at < text.size()) {
      out.push_back(text.substr(at));
    }
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* match_ = nullptr;
};

Pieces split_by_patterns(const std::string& text) {
  static const Regex stages[] = {Regex(kNumberPattern), Regex(kCjkPattern), Regex(kWordPattern)};
  Pieces pieces = {text};
  for (const Regex& stage : stages) {
    Pieces next;
    for (const std::string& piece : pieces) {
      stage.split(piece, next);
    }
    pieces = std::move(next);
  }
  return pieces;
}

Pieces split_by_scanner(const std::string& text) {
  Pieces pieces;
  PieceScanner scanner(text);
  std::string_view piece;
  while (scanner.next(piece)) {
    pieces.emplace_back(piece);
  }
  return pieces;
}

TEST(PieceScanner, KnownSplits) {
  EXPECT_EQ(split_by_scanner("a  1"), (Pieces{"a", "  ", "1"}));
  EXPECT_EQ(split_by_scanner("a  b"), (Pieces{"a", " ", " b"}));
  EXPECT_EQ(split_by_scanner("x.append(1234)"), (Pieces{"x", ".append", "(", "123", "4", ")"}));
  EXPECT_EQ(split_by_scanner("a \n\n  b"), (Pieces{"a", " \n\n", " ", " b"}));
  EXPECT_EQ(split_by_scanner("アイ・ウ"), (Pieces{"アイ", "・", "ウ"}));
  EXPECT_EQ(split_by_scanner(" !!\n\nx"), (Pieces{" !!\n\n", "x"}));
  EXPECT_EQ(split_by_scanner("\x01\x02!"), (Pieces{"\x01\x02", "!"}));
  EXPECT_EQ(split_by_scanner("\x01\x02z"), (Pieces{"\x01", "\x02z"}));
  EXPECT_EQ(split_by_scanner(""), Pieces{});
}

// Characters whose class is the same in Unicode 14 (the PCRE2 of Debian 12) and 16.
std::string random_text(Random& random) {
  static const std::vector<std::string> kAtoms = {
      " ",      " ",      "\t",     "\n",     "\r",         "\r\n",   "\u00a0", "\u3000", "\u2028",
      "\u0085", "a",      "Z",      "é",      "ß",          "你",     "龥",     "ア",     "゛",
      "・",     "\u3099", "\u3040", "龦",     "1",          "23",     "٣",      "Ⅻ",      "½",
      "!",      ".",      "-",      "'",      "$",          "+",      "^",      "｜",     "。",
      "«",      "™",      "🙂",   "→",      "\u0301",     "\ufe0f", "\u20dd", "\u200b", "\u200d",
      "\x01",   "\x7f",   "\ue000", "\ufeff", "\U0010FFFF", "＠",     "ﬁ",      "ǅ",      "ʰ",
      "한",     "ا",      "क",      "\u094d"};
  std::string text;
  for (std::uint64_t n = random.below(24); n > 0; --n) {
    text += kAtoms[random.below(kAtoms.size())];
  }
  return text;
}

TEST(PieceScanner, SplitsAsThePatternsDo) {
  Random random(11);
  for (int round = 0; round < 30000; ++round) {
    const std::string text = random_text(random);
    ASSERT_EQ(split_by_scanner(text), split_by_patterns(text)) << ::testing::PrintToString(text);
  }
}

TEST(Unicode, ClassesOfKnownCharacters) {
  EXPECT_EQ(char_class('a'), CharClass::kLetter);
  EXPECT_EQ(char_class('$'), CharClass::kSymbol);
  EXPECT_EQ(char_class('_'), CharClass::kPunctuation);
  EXPECT_EQ(char_class(0x85), CharClass::kSpace);
  EXPECT_EQ(char_class(0xFEFF), CharClass::kOther);
  EXPECT_EQ(char_class(0x0301), CharClass::kMark);
  EXPECT_EQ(char_class(0x2163), CharClass::kNumber);
  EXPECT_EQ(char_class(0x1F642), CharClass::kSymbol);
  EXPECT_EQ(char_class(0x2A6DF), CharClass::kLetter);
  EXPECT_EQ(char_class(kMaxCodePoint), CharClass::kOther);
}

TEST(Utf8, ReplacesMaximalInvalidParts) {
  EXPECT_EQ(replace_invalid_utf8("a\x80z"), "a\uFFFDz");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x99"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x99x"), "\uFFFDx");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_TRUE(is_valid_utf8("ä🙂\uFFFD"));
  EXPECT_FALSE(is_valid_utf8("ä\xF0\x9F"));
}

TEST(Utf8, AssemblesTheSameTextFromAnyCuts) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      static const std::vector<std::string> kAtoms = {"a",    "ä",        "你",  "🙂",
                                                      "\x80", "\xF0\x9F", "\xE4"};
      bytes += kAtoms[random.below(kAtoms.size())];
    }
    std::string out;
    Utf8Assembler assembler;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = 1 + random.below(3);
      assembler.push(std::string_view(bytes).substr(at, n), out);
      EXPECT_TRUE(is_valid_utf8(out));
      at += n;
    }
    assembler.finish(out);
    EXPECT_EQ(out, replace_invalid_utf8(bytes));
  }
}

}  // namespace
}  // namespace tandem::text
