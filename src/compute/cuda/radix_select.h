// Exact top-k of float scores by radix selection: four passes over 8 bits of an order-preserving
// key find the k-th best score and how many of its equals still fit. Host and device.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "compute/tensor/portable.h"

namespace tandem::cuda {

constexpr int kRadixBins = 256;

// Larger scores have larger keys; -0 equals 0; NaN is below everything.
TANDEM_HD inline std::uint32_t score_key(float score) {
  if (score != score) {
    return 0;
  }
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// The search after some passes: keys whose upper bits (under `mask`) equal `prefix` are still
// undecided, and `wanted` of them are to be taken, the largest first.
struct RadixState {
  std::uint32_t prefix = 0;
  std::uint32_t mask = 0;
  std::int32_t wanted = 0;
};

TANDEM_HD inline int radix_shift(int pass) {
  return 24 - 8 * pass;
}

// Continues with the counts [256] of the undecided keys by their bits of this pass.
// REQUIRES: the counts sum to at least state.wanted >= 1.
TANDEM_HD inline RadixState next_radix_state(RadixState state, int pass,
                                             const std::int32_t* counts) {
  int bin = kRadixBins - 1;
  while (bin > 0 && counts[bin] < state.wanted) {
    state.wanted -= counts[bin];
    --bin;
  }
  const int shift = radix_shift(pass);
  state.prefix |= static_cast<std::uint32_t>(bin) << shift;
  state.mask |= 0xFFU << shift;
  return state;
}

}  // namespace tandem::cuda
