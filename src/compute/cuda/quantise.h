// Activation quantisation of rows, ahead of products with FP8 and FP4 weights.
#pragma once

#include <cstdint>

#include "compute/cuda/ops.h"

namespace tandem::cuda {

// out[r, :] = value that act_quant(x[r, :], 128) stands for; the last block may be short. `out` may
// be x if the strides are equal. SOURCE: model.md 2.0.
void quantise_rows(const Context& context, const float* x, std::int64_t x_stride,
                   std::int64_t n_rows, std::int64_t cols, float* out, std::int64_t out_stride);

}  // namespace tandem::cuda
