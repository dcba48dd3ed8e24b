// Reproducible values for measurements: never zeros, never NaN, every byte different. The same
// function gives them on the host and on the device.
#pragma once

#include <cstdint>

#include "compute/tensor/numeric_formats.h"
#include "compute/tensor/portable.h"

namespace tandem::cuda {

enum class FillKind {
  kFp8,    // any e4m3 code but NaN
  kBytes,  // any byte: FP4 pairs
  kScale,  // e8m0, `center` or one above
  kBf16,   // 2-byte elements, uniform in center +- spread
  kF32,    // 4-byte elements, uniform in center +- spread
  kIds,    // rows of `row` different ids below `bound`, 4-byte elements
};

struct FillSpec {
  FillKind kind = FillKind::kBytes;
  std::uint64_t seed = 0;
  float center = 0;
  float spread = 0;
  std::int32_t row = 1;
  std::int32_t bound = 1;
};

// SplitMix64.
TANDEM_HD inline std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Bytes of one element.
TANDEM_HD inline int element_bytes(FillKind kind) {
  return kind == FillKind::kF32 || kind == FillKind::kIds ? 4 : kind == FillKind::kBf16 ? 2 : 1;
}

// Writes element i of an array that starts at `data`.
TANDEM_HD inline void fill_element(const FillSpec& spec, void* data, std::int64_t i) {
  const std::uint64_t random = scramble(spec.seed * 0x100000001B3U + static_cast<std::uint64_t>(i));
  auto* bytes = static_cast<std::uint8_t*>(data);
  const float unit = static_cast<float>(random >> 40) * 0x1p-23F - 1.0F;
  switch (spec.kind) {
    case FillKind::kFp8: {
      const auto code = static_cast<std::uint8_t>(random);
      bytes[i] = (code & 0x7FU) == 0x7FU ? static_cast<std::uint8_t>(code ^ 1U) : code;
      return;
    }
    case FillKind::kBytes:
      bytes[i] = static_cast<std::uint8_t>(random);
      return;
    case FillKind::kScale:
      bytes[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(spec.center) + random % 2);
      return;
    case FillKind::kBf16:
      static_cast<std::uint16_t*>(data)[i] =
          tensor::float_to_bf16(spec.center + spec.spread * unit);
      return;
    case FillKind::kF32:
      static_cast<float*>(data)[i] = spec.center + spec.spread * unit;
      return;
    case FillKind::kIds: {
      const std::uint64_t row = scramble(spec.seed + static_cast<std::uint64_t>(i / spec.row));
      static_cast<std::int32_t*>(data)[i] =
          static_cast<std::int32_t>((row % static_cast<std::uint64_t>(spec.bound) +
                                     static_cast<std::uint64_t>(i % spec.row)) %
                                    static_cast<std::uint64_t>(spec.bound));
      return;
    }
  }
}

// Queues the filling of n elements of device memory.
void fill_memory(void* stream, const FillSpec& spec, void* data, std::int64_t n);

// Queues one pass of reading n bytes (a multiple of 16) of device memory; `sink` [1] takes a sum
// that keeps the reads alive. For the read bandwidth that kernels are measured against.
void read_memory(void* stream, const void* data, std::int64_t n, std::uint32_t* sink);

}  // namespace tandem::cuda
