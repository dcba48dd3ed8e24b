// The number formats of model.md 2.0, one scalar function each: the exact meaning of every byte of
// the checkpoint and of every rounding that `native` numerics performs.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "compute/tensor/portable.h"

namespace tandem::tensor {

// bfloat16 bits -> float.
TANDEM_HD inline float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// float -> bfloat16 bits, round to nearest even. NaN stays NaN.
TANDEM_HD inline std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// The nearest bfloat16 value, as a float.
TANDEM_HD inline float round_bf16(float value) {
  return bf16_to_float(float_to_bf16(value));
}

// E8M0 byte -> 2^(byte - 127). Byte 255 (NaN) is a load error and never reaches this function.
TANDEM_HD inline float e8m0_to_float(std::uint8_t byte) {
  return byte == 0 ? 0x1.0p-127F : std::bit_cast<float>(static_cast<std::uint32_t>(byte) << 23);
}

// E4M3 byte -> float (exact). 0x7F and 0xFF are NaN.
TANDEM_HD inline float e4m3_to_float(std::uint8_t byte) {
  const std::uint32_t exponent = (byte >> 3) & 15U;
  const std::uint32_t mantissa = byte & 7U;
  const float sign = (byte & 0x80U) != 0 ? -1.0F : 1.0F;
  if (exponent == 15U && mantissa == 7U) {
    return std::bit_cast<float>(0x7FC00000U);
  }
  if (exponent == 0U) {
    return sign * static_cast<float>(mantissa) * 0x1.0p-9F;
  }
  return sign * std::bit_cast<float>(((exponent + 120U) << 23) | (mantissa << 20));
}

// float in [-448, 448] -> E4M3 byte, round to nearest even.
TANDEM_HD inline std::uint8_t float_to_e4m3(float value) {
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80U : 0U);
  const float size = std::fabs(value);
  if (size < 0x1.0p-6F) {  // subnormal steps of 2^-9; 8 steps reach the first normal
    return static_cast<std::uint8_t>(sign |
                                     static_cast<std::uint8_t>(std::nearbyint(size * 512.0F)));
  }
  const auto bits = std::bit_cast<std::uint32_t>(size);
  const std::uint32_t rounded = bits + 0x7FFFFU + ((bits >> 20) & 1U);
  const std::uint32_t code = (rounded >> 20) - (120U << 3);
  return static_cast<std::uint8_t>(sign | (code > 0x7EU ? 0x7EU : code));
}

// E2M1 nibble -> float: 0, .5, 1, 1.5, 2, 3, 4, 6 with the sign in bit 3.
TANDEM_HD inline float e2m1_to_float(std::uint8_t nibble) {
  constexpr float kMagnitude[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = kMagnitude[nibble & 7U];
  return (nibble & 8U) != 0 ? -magnitude : magnitude;
}

// float -> E2M1 nibble, nearest, ties to the even mantissa; over 6 becomes 6.
TANDEM_HD inline std::uint8_t float_to_e2m1(float value) {
  const float size = std::fabs(value);
  std::uint8_t code = 7;
  if (size <= 0.25F) {
    code = 0;
  } else if (size < 0.75F) {
    code = 1;
  } else if (size <= 1.25F) {
    code = 2;
  } else if (size < 1.75F) {
    code = 3;
  } else if (size <= 2.5F) {
    code = 4;
  } else if (size < 3.5F) {
    code = 5;
  } else if (size <= 5.0F) {
    code = 6;
  }
  return static_cast<std::uint8_t>(code | (std::signbit(value) && code != 0 ? 8U : 0U));
}

// 2^ceil(log2 a) for a normal a > 0, on the bits: exact where ceilf(log2f()) is off by one.
TANDEM_HD inline float pow2_up(float a) {
  const auto bits = std::bit_cast<std::uint32_t>(a);
  const std::uint32_t exponent = (bits >> 23) + ((bits & 0x7FFFFFU) != 0 ? 1U : 0U);
  return std::bit_cast<float>(exponent << 23);
}

// Scale of one block of act_quant: pow2_up(max(amax, 1e-4) / 448). SOURCE: model.md 2.0.
TANDEM_HD inline float act_quant_scale(float amax) {
  return pow2_up((amax > 1e-4F ? amax : 1e-4F) * (1.0F / 448.0F));
}

// Scale of one block of fp4_sim: pow2_up(max(amax, 6 * 2^-126) / 6). SOURCE: model.md 2.0.
TANDEM_HD inline float fp4_scale(float amax) {
  const float floor_value = 6.0F * 0x1.0p-126F;
  return pow2_up((amax > floor_value ? amax : floor_value) * (1.0F / 6.0F));
}

}  // namespace tandem::tensor
