// Character classes of Unicode 16.0, as far as the pre-tokeniser asks for them (model.md 5.1).
// The table is made by tools/make_unicode_table.mjs, so a text is split alike on every machine.
#pragma once

#include <cstdint>

namespace tandem::text {

enum class CharClass : std::uint8_t {
  kOther,        // controls, format characters, unassigned
  kLetter,       // \p{L}
  kMark,         // \p{M}
  kNumber,       // \p{N}
  kPunctuation,  // \p{P}
  kSymbol,       // \p{S}
  kSpace,        // White_Space
};

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;
inline constexpr std::uint32_t kClassPageSize = 128;
inline constexpr std::uint32_t kClassPages = (kMaxCodePoint + 1) / kClassPageSize;

extern const std::uint8_t kClassPageIndex[kClassPages];
extern const std::uint8_t kClassPageData[];

// The class of a code point. REQUIRES: code <= kMaxCodePoint.
inline CharClass char_class(char32_t code) {
  const std::uint32_t page = kClassPageIndex[code / kClassPageSize];
  const std::uint32_t within = code % kClassPageSize;
  const std::uint8_t pair = kClassPageData[(page * kClassPageSize + within) / 2];
  return static_cast<CharClass>((pair >> ((within & 1) * 4)) & 0xF);
}

}  // namespace tandem::text
