// Whole matrix products on all threads, built from simd_matrix.h.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/cpu/fast/context.h"

namespace tandem::cpu::fast {

// Rows of x as multiply_rows wants them: quantised in blocks of 128 if asked, packed for `format`.
// Row r lies at x + r * stride and has `cols` values. `rows` receives a pointer to each; `buffer`
// holds them unless they can stay where they are.
void pack_inputs(Context& context, const float* x, std::int64_t stride, std::int64_t n_rows,
                 tensor::WeightFormat format, std::int64_t cols, bool quantise, Scratch& buffer,
                 std::vector<const float*>& rows);

// Outputs that one work item computes: whole multiples of the kernels' row counts, and enough items
// for all threads.
std::int64_t output_block(const Context& context, std::int64_t n_outputs, std::int64_t n_rows);

// out[r * out_stride + o] = w[o] . rows[r], rounded to bf16 if `round` is set.
void multiply(Context& context, const tensor::WeightMatrix& w, const float* const* rows,
              std::int64_t n_rows, bool round, float* out, std::int64_t out_stride);

}  // namespace tandem::cpu::fast
