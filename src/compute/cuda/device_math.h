// Small device functions that several ops share: where a token row belongs, sums over a warp or a
// block in a fixed order, rotation, and the roundings of `native` numerics.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/cuda/platform.h"
#include "compute/kernels/kernels.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::cuda {

// The sequence and position of one token row.
struct TokenPlace {
  kernels::Segment segment;
  Position position = 0;
};

// Segments lie in order of first_row and cover all rows.
__device__ inline TokenPlace place_of(const kernels::StepRows& rows, std::int32_t t) {
  std::int32_t low = 0;
  std::int32_t high = rows.n_segments - 1;
  while (low < high) {
    const std::int32_t middle = (low + high + 1) / 2;
    if (rows.segments[middle].first_row <= t) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  TokenPlace place;
  place.segment = rows.segments[low];
  place.position = place.segment.first_position + (t - place.segment.first_row);
  return place;
}

__device__ inline int lane_id() {
  return static_cast<int>(threadIdx.x % kWarp);
}

__device__ inline int warp_id() {
  return static_cast<int>(threadIdx.x / kWarp);
}

// Every lane gets the same bits: at each stage both partners add the same two numbers.
__device__ inline float warp_sum(float value) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, mask);
  }
  return value;
}

// Largest over groups of `width` neighbouring lanes.
__device__ inline float group_max(float value, int width) {
  for (int mask = width / 2; mask > 0; mask /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, mask));
  }
  return value;
}

// Sum over a block of whole warps; `buffer` has room for one float per warp. All threads get it.
__device__ inline float block_sum(float value, float* buffer) {
  const int n_warps = static_cast<int>(blockDim.x / kWarp);
  value = warp_sum(value);
  __syncthreads();
  if (lane_id() == 0) {
    buffer[warp_id()] = value;
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < n_warps; ++i) {
    sum += buffer[i];
  }
  return sum;
}

// bf16 under native numerics.
__device__ inline float rounded(bool native, float value) {
  return native ? tensor::round_bf16(value) : value;
}

__device__ inline float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

// Rotates pair k of position p; sign -1 turns back. The angle is the float32 product, as in
// training. SOURCE: model.md 2.0 rope, T1, T7.
__device__ inline void rotate_pair(Position position, const float* inv_freq, int k, float sign,
                                   float& a, float& b) {
  const float angle = static_cast<float>(position) * inv_freq[k];
  const float c = cosf(angle);
  const float s = sign * sinf(angle);
  const float x = a;
  const float y = b;
  a = x * c - y * s;
  b = x * s + y * c;
}

// The value that e4m3(x / scale) * scale stands for.
__device__ inline float through_e4m3(float x, float scale) {
  const float scaled = fminf(fmaxf(x * (1.0F / scale), -448.0F), 448.0F);
  return tensor::e4m3_to_float(tensor::float_to_e4m3(scaled)) * scale;
}

// Hadamard transform and FP4 simulation of 128 values, four neighbouring ones per lane of a warp.
// SOURCE: model.md 2.0 hadamard, fp4_sim.
__device__ inline void hadamard_fp4(float (&v)[4]) {
  const float s0 = v[0] + v[1];
  const float d0 = v[0] - v[1];
  const float s1 = v[2] + v[3];
  const float d1 = v[2] - v[3];
  v[0] = s0 + s1;
  v[1] = d0 + d1;
  v[2] = s0 - s1;
  v[3] = d0 - d1;
  for (int mask = 1; mask < kWarp; mask *= 2) {
    const bool upper = (lane_id() & mask) != 0;
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(kFullWarp, v[i], mask);
      v[i] = upper ? other - v[i] : v[i] + other;
    }
  }
  const float norm = 1.0F / sqrtf(128.0F);
  float amax = 0;
  for (int i = 0; i < 4; ++i) {
    v[i] = tensor::round_bf16(v[i] * norm);
    amax = fmaxf(amax, fabsf(v[i]));
  }
  const float scale = tensor::fp4_scale(group_max(amax, 8));
  for (int i = 0; i < 4; ++i) {
    v[i] = tensor::e2m1_to_float(tensor::float_to_e2m1(v[i] / scale)) * scale;
  }
}

}  // namespace tandem::cuda
