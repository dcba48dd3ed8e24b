// How packed weights become operands of the bf16 matrix instruction. Host and device.
//
// The instruction multiplies 16 rows by 8 columns over 16 values of k. Which k stands where in it
// does not matter as long as both operands agree, so a lane takes 16 neighbouring bytes of its row,
// and activations are laid out to match ("packed order", below). Products are exact: e2m1 and e4m3
// values times a power of two are bf16 values.
//
// Decoding moves the bits of two codes into a bf16 pair at once. Their exponents are then too small
// by a constant, which the block scale's power of two makes good; 2^-40 is left in, so that no
// scale that a checkpoint can hold overflows, and taken out of the sum (kSumScale).
#pragma once

#include <cstdint>

#include "compute/tensor/portable.h"
#include "compute/tensor/weight_matrix.h"

namespace tandem::cuda {

using tensor::WeightFormat;

constexpr float kSumScale = 0x1p40F;
constexpr float kPlainScale = 1.0F;  // bf16 weights need none of this

// 16 bytes of one row, as one lane loads them.
struct alignas(16) Words {
  std::uint32_t word[4];
};

// Two bf16 in one register: low half first.
using Pair = std::uint32_t;

// Four codes -> two pairs, not yet scaled: values (0, 2) and (1, 3).
TANDEM_HD inline void split_fp8(std::uint32_t word, Pair (&pairs)[2]) {
  const std::uint32_t even = word & 0x00FF00FFU;
  const std::uint32_t odd = (word >> 8) & 0x00FF00FFU;
  pairs[0] = (even & 0x00800080U) << 8 | (even & 0x007F007FU) << 4;
  pairs[1] = (odd & 0x00800080U) << 8 | (odd & 0x007F007FU) << 4;
}

// Eight codes -> four pairs, not yet scaled: values (0, 4), (1, 5), (2, 6), (3, 7).
TANDEM_HD inline void split_fp4(std::uint32_t word, Pair (&pairs)[4]) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t codes = word >> (4 * i);
    pairs[i] = (codes & 0x00080008U) << 12 | (codes & 0x00070007U) << 6;
  }
}

// The pair of powers of two that finishes decoding. REQUIRES: a scale of at most 2^41.
TANDEM_HD inline Pair fp8_factor(std::uint8_t e8m0) {
  constexpr std::uint32_t kShift = 80;  // 120 (exponent bias) - 40
  const std::uint32_t half = (e8m0 + kShift) << 7;
  return half | half << 16;
}

TANDEM_HD inline Pair fp4_factor(std::uint8_t e8m0) {
  constexpr std::uint32_t kShift = 86;  // 126 (exponent bias) - 40
  const std::uint32_t half = (e8m0 + kShift) << 7;
  return half | half << 16;
}

// Values of k that one lane group of four takes from a row at once.
constexpr TANDEM_HD int k_block(WeightFormat format) {
  return format == WeightFormat::kFp4 ? 128 : format == WeightFormat::kFp8 ? 64 : 32;
}

// Place of value k in packed order. In a block of k_block values, lane t of four holds a quarter of
// them, in the order in which decoding gives them; its values lie in units of eight (16 bytes),
// unit j of all four lanes side by side.
TANDEM_HD inline std::int64_t packed_place(WeightFormat format, std::int64_t k) {
  const int block = k_block(format);
  const int quarter = block / 4;
  const int in_block = static_cast<int>(k % block);
  const int lane = in_block / quarter;
  const int i = in_block % quarter;
  int place = i;  // bf16: as they come
  if (format == WeightFormat::kFp8) {
    place = i / 4 * 4 + (i % 2) * 2 + i % 4 / 2;
  } else if (format == WeightFormat::kFp4) {
    place = i / 8 * 8 + i % 4 * 2 + i % 8 / 4;
  }
  return k - in_block + place / 8 * 32 + lane * 8 + place % 8;
}

// Part `part` of the kParts into which every sum over k is cut: blocks of k [first, last). The cut
// depends on the shape alone, so a row's sum has the same bits in any company.
constexpr int kParts = 8;

struct BlockRange {
  int first = 0;
  int last = 0;
};

TANDEM_HD inline BlockRange part_range(int n_blocks, int part) {
  return {n_blocks * part / kParts, n_blocks * (part + 1) / kParts};
}

}  // namespace tandem::cuda
