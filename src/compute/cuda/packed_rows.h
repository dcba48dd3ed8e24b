// Activations as the matrix kernels read them: bf16, in packed order (fragments.h).
#pragma once

#include <cstdint>

#include "compute/cuda/ops.h"
#include "compute/tensor/weight_matrix.h"

namespace tandem::cuda {

// out[r, packed_place(format, c)] = x[r, c], [n_rows, cols]. With `quantise`, the value that
// act_quant(x, 128) stands for; without, x must be bf16 values already.
// REQUIRES: cols is a multiple of k_block(format).
void pack_rows(const Context& context, const float* x, std::int64_t x_stride, std::int64_t n_rows,
               std::int64_t cols, tensor::WeightFormat format, bool quantise, std::uint16_t* out);

}  // namespace tandem::cuda
