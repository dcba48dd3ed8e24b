// Products with packed weights. A weight row is decoded in registers, once for all rows of x.
//
// Each output is one chain of fused multiply-adds per lane over k in a fixed order, then a sum over
// lanes. The chain is the same for one row and for many, so a row's result is bit-identical alone
// and in a batch. Block scales are powers of two: applying them to the
// weight is exact.
//
// x is packed first: permuted inside chunks so that decoded vectors meet their inputs without
// shuffles, and padded with zeros to whole chunks.
#pragma once

#include <cstdint>

#include "compute/tensor/weight_matrix.h"

namespace tandem::cpu {

// What the many-row path holds at once: kBlockW decoded weight rows of kBlockK values in the
// first-level cache, kBlockX rows of x and all their sums in the second.
constexpr std::int64_t kBlockX = 64;
constexpr std::int64_t kBlockW = 12;
constexpr std::int64_t kBlockK = 384;

// Working memory of one thread.
struct alignas(64) MatrixScratch {
  float weights[kBlockW * kBlockK];
  float sums[kBlockX * kBlockW * 8];
};

// Floats of one packed row of x for a weight of this format and width.
std::int64_t packed_cols(tensor::WeightFormat format, std::int64_t cols);

// Floats from one packed row to the next: one cache line more than a row, so that rows of a power
// of two do not all fall into the same cache sets.
inline std::int64_t packed_stride(tensor::WeightFormat format, std::int64_t cols) {
  return packed_cols(format, cols) + 16;
}

// True if packing is the identity, so that rows of x may be used where they lie.
bool packs_as_is(tensor::WeightFormat format, std::int64_t cols);

// Packs x [cols] into out [packed_cols].
void pack_row(tensor::WeightFormat format, const float* x, std::int64_t cols, float* out);

// out[r * out_stride + i] = w[first + i] . x[r] in float32, for i < count and r < n_rows.
// x: n_rows pointers to packed rows.
void multiply_rows(const tensor::WeightMatrix& w, std::int64_t first, std::int64_t count,
                   const float* const* x, std::int64_t n_rows, float* out, std::int64_t out_stride,
                   MatrixScratch& scratch);

}  // namespace tandem::cpu
