// Cache rows as a warp reads and writes them: 16 neighbouring values of a 512-wide row per lane, or
// 4 of a 128-wide one. Same bytes as tensor::store_row and load_row; rows are 8-byte aligned.
#pragma once

#include <cstdint>

#include "compute/cuda/device_math.h"
#include "compute/tensor/row_format.h"

namespace tandem::cuda {

constexpr int kLaneValues = tensor::kHeadDim / kWarp;
constexpr int kRopeLane = tensor::kNopeDim / kLaneValues;  // first lane of the rotated dims
constexpr int kFp8ScaleOffset = tensor::kNopeDim;
constexpr int kFp8RopeOffset = kFp8ScaleOffset + tensor::kNopeDim / 64 + 1;
constexpr int kScaleLanes = 64 / kLaneValues;  // lanes that share one FP8 scale

// N values of float or bf16, 8 bytes at a time.
template <int N>
__device__ inline void load_plain(tensor::RowFormat format, const std::uint8_t* row, int first,
                                  float* v) {
  if (format == tensor::RowFormat::kF32) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(row + 4 * first);
    for (int i = 0; i < N / 2; ++i) {
      const std::uint64_t pair = words[i];
      v[2 * i] = std::bit_cast<float>(static_cast<std::uint32_t>(pair));
      v[2 * i + 1] = std::bit_cast<float>(static_cast<std::uint32_t>(pair >> 32));
    }
  } else {
    const auto* words = reinterpret_cast<const std::uint64_t*>(row + 2 * first);
    for (int i = 0; i < N / 4; ++i) {
      const std::uint64_t four = words[i];
      for (int j = 0; j < 4; ++j) {
        v[4 * i + j] = tensor::bf16_to_float(static_cast<std::uint16_t>(four >> (16 * j)));
      }
    }
  }
}

template <int N>
__device__ inline void store_plain(tensor::RowFormat format, std::uint8_t* row, int first,
                                   const float* v) {
  if (format == tensor::RowFormat::kF32) {
    auto* words = reinterpret_cast<std::uint64_t*>(row + 4 * first);
    for (int i = 0; i < N / 2; ++i) {
      words[i] = std::bit_cast<std::uint32_t>(v[2 * i]) |
                 std::uint64_t{std::bit_cast<std::uint32_t>(v[2 * i + 1])} << 32;
    }
  } else {
    auto* words = reinterpret_cast<std::uint64_t*>(row + 2 * first);
    for (int i = 0; i < N / 4; ++i) {
      std::uint64_t four = 0;
      for (int j = 0; j < 4; ++j) {
        four |= std::uint64_t{tensor::float_to_bf16(v[4 * i + j])} << (16 * j);
      }
      words[i] = four;
    }
  }
}

// Values lane * 16 .. lane * 16 + 15 of a latent row.
__device__ inline void load_row16(tensor::RowFormat format, const void* data, int lane,
                                  float (&v)[kLaneValues]) {
  const auto* row = static_cast<const std::uint8_t*>(data);
  if (format != tensor::RowFormat::kFp8) {
    load_plain<kLaneValues>(format, row, lane * kLaneValues, v);
  } else if (lane >= kRopeLane) {
    load_plain<kLaneValues>(tensor::RowFormat::kBf16, row + kFp8RopeOffset,
                            (lane - kRopeLane) * kLaneValues, v);
  } else {
    const float scale = tensor::e8m0_to_float(row[kFp8ScaleOffset + lane / kScaleLanes]);
    const auto* words = reinterpret_cast<const std::uint64_t*>(row + lane * kLaneValues);
    for (int i = 0; i < kLaneValues / 8; ++i) {
      const std::uint64_t eight = words[i];
      for (int j = 0; j < 8; ++j) {
        v[8 * i + j] = tensor::e4m3_to_float(static_cast<std::uint8_t>(eight >> (8 * j))) * scale;
      }
    }
  }
}

// FP8 scale of the 64 values that this lane and its neighbours hold. All lanes must call it.
__device__ inline float scale_of_64(const float (&v)[kLaneValues]) {
  float amax = 0;
  for (int i = 0; i < kLaneValues; ++i) {
    amax = fmaxf(amax, fabsf(v[i]));
  }
  return tensor::act_quant_scale(group_max(amax, kScaleLanes));
}

// All lanes of the warp must call it, each with its 16 values.
__device__ inline void store_row16(tensor::RowFormat format, void* data, int lane,
                                   const float (&v)[kLaneValues]) {
  auto* row = static_cast<std::uint8_t*>(data);
  const float scale = scale_of_64(v);
  if (format != tensor::RowFormat::kFp8) {
    store_plain<kLaneValues>(format, row, lane * kLaneValues, v);
  } else if (lane >= kRopeLane) {
    store_plain<kLaneValues>(tensor::RowFormat::kBf16, row + kFp8RopeOffset,
                             (lane - kRopeLane) * kLaneValues, v);
  } else {
    auto* words = reinterpret_cast<std::uint64_t*>(row + lane * kLaneValues);
    for (int i = 0; i < kLaneValues / 8; ++i) {
      std::uint64_t eight = 0;
      for (int j = 0; j < 8; ++j) {
        const float x = fminf(fmaxf(v[8 * i + j] / scale, -448.0F), 448.0F);
        eight |= std::uint64_t{tensor::float_to_e4m3(x)} << (8 * j);
      }
      words[i] = eight;
    }
    if (lane % kScaleLanes == 0) {
      row[kFp8ScaleOffset + lane / kScaleLanes] =
          static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(scale) >> 23);
    }
    if (lane == 0) {
      row[kFp8RopeOffset - 1] = 0;
    }
  }
}

// act_sim of the first 448 values of a row that a warp holds. SOURCE: model.md 2.0 act_sim.
__device__ inline void simulate_fp8_row(int lane, float (&v)[kLaneValues]) {
  const float scale = scale_of_64(v);
  if (lane < kRopeLane) {
    for (int i = 0; i < kLaneValues; ++i) {
      v[i] = through_e4m3(v[i], scale);
    }
  }
}

// Rotates the last 64 values of a row that a warp holds.
__device__ inline void rotate_row16(bool native, Position position, const float* inv_freq, int lane,
                                    float (&v)[kLaneValues]) {
  if (lane >= kRopeLane) {
    for (int i = 0; i < kLaneValues; i += 2) {
      const int pair = (lane - kRopeLane) * (kLaneValues / 2) + i / 2;
      rotate_pair(position, inv_freq, pair, 1.0F, v[i], v[i + 1]);
      v[i] = rounded(native, v[i]);
      v[i + 1] = rounded(native, v[i + 1]);
    }
  }
}

}  // namespace tandem::cuda
