// The one matrix instruction of the portable path, and multiplication of bf16 pairs.
#pragma once

#include <bit>
#include <cstdint>

#include "compute/cuda/fragments.h"
#include "compute/cuda/platform.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::cuda {

// Both halves multiplied; exact where the result is a bf16 value. Subnormal halves count.
__device__ inline Pair multiply_pairs(Pair a, Pair b) {
#ifdef __CUDACC__
  Pair result;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
#else
  const auto half = [&](int shift) {
    const float x = tensor::bf16_to_float(static_cast<std::uint16_t>(a >> shift));
    const float y = tensor::bf16_to_float(static_cast<std::uint16_t>(b >> shift));
    return static_cast<Pair>(tensor::float_to_bf16(x * y)) << shift;
  };
  return half(0) | half(16);
#endif
}

// d[16, 8] += a[16, 16] * b[16, 8]. With g = lane / 4 and t = lane % 4: a holds row g and g + 8 at
// columns 2t, 2t+1 (a[0], a[1]) and 2t+8, 2t+9 (a[2], a[3]); b holds column g at rows 2t, 2t+1
// (b[0]) and 2t+8, 2t+9 (b[1]); d holds row g (d[0], d[1]) and g + 8 (d[2], d[3]) at columns 2t,
// 2t+1. SOURCE: PTX ISA 9.0, mma.m16n8k16 with .bf16.
__device__ inline void mma_bf16(float (&d)[4], const Pair (&a)[4], const Pair (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  const int g = emulation::lane() / 4;
  const int t = emulation::lane() % 4;
  float rows[2][16];     // rows g and g + 8 of a
  float columns[2][16];  // columns 2t and 2t + 1 of b
  const auto spread = [](std::uint64_t both, int at, float(&first)[16], float(&second)[16]) {
    for (int i = 0; i < 2; ++i) {
      first[at + i] = tensor::bf16_to_float(static_cast<std::uint16_t>(both >> (16 * i)));
      second[at + i] = tensor::bf16_to_float(static_cast<std::uint16_t>(both >> (32 + 16 * i)));
    }
  };
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t* lanes =
        emulation::exchange(a[2 * half] | std::uint64_t{a[2 * half + 1]} << 32);
    for (int i = 0; i < 4; ++i) {
      spread(lanes[g * 4 + i], 8 * half + 2 * i, rows[0], rows[1]);
    }
  }
  const std::uint64_t* lanes = emulation::exchange(b[0] | std::uint64_t{b[1]} << 32);
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t both = lanes[(2 * t + c) * 4 + i];
      for (int j = 0; j < 2; ++j) {
        columns[c][2 * i + j] = tensor::bf16_to_float(static_cast<std::uint16_t>(both >> (16 * j)));
        columns[c][8 + 2 * i + j] =
            tensor::bf16_to_float(static_cast<std::uint16_t>(both >> (32 + 16 * j)));
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) {
      d[i] += rows[i / 2][k] * columns[i % 2][k];
    }
  }
#endif
}

}  // namespace tandem::cuda
