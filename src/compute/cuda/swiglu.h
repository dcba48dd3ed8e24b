// What every path through the experts shares: the clamped gate and the order of the sum.
#pragma once

#include "compute/cuda/device_math.h"

namespace tandem::cuda {

// weight * silu(min(gate, limit)) * clamp(up). SOURCE: model.md 2.11, T32, T33.
__device__ inline float gated(bool native, float gate, float up, float limit, float weight) {
  const float g = fminf(rounded(native, gate), limit);
  const float u = fminf(fmaxf(rounded(native, up), -limit), limit);
  return rounded(native, weight * (g * sigmoid(g) * u));
}

// Slot of the smallest expert id above `last`. A token's experts differ.
__device__ inline std::int32_t next_slot(const std::int32_t* experts, std::int32_t top_k,
                                         std::int32_t last) {
  std::int32_t best = -1;
  for (std::int32_t k = 0; k < top_k; ++k) {
    if (experts[k] > last && (best < 0 || experts[k] < experts[best])) {
      best = k;
    }
  }
  return best;
}

}  // namespace tandem::cuda
