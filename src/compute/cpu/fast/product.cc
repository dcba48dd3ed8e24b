#include "compute/cpu/fast/product.h"

#include <algorithm>

#include "compute/cpu/fast/simd_rows.h"

namespace tandem::cpu::fast {

void pack_inputs(Context& context, const float* x, std::int64_t stride, std::int64_t n_rows,
                 tensor::WeightFormat format, std::int64_t cols, bool quantise, Scratch& buffer,
                 std::vector<const float*>& rows) {
  rows.resize(static_cast<std::size_t>(n_rows));
  if (!quantise && packs_as_is(format, cols)) {
    for (std::int64_t r = 0; r < n_rows; ++r) {
      rows[static_cast<std::size_t>(r)] = x + r * stride;
    }
    return;
  }
  const std::int64_t width = packed_stride(format, cols);
  float* packed = buffer.floats(n_rows * width);
  context.for_each(n_rows, 4 * cols, [&](std::int64_t r, int thread) {
    const float* row = x + r * stride;
    if (quantise) {
      float* copy = context.scratch(thread).first.floats(cols);
      quantise_row(row, cols, 128, copy);
      row = copy;
    }
    pack_row(format, row, cols, packed + r * width);
    rows[static_cast<std::size_t>(r)] = packed + r * width;
  });
}

std::int64_t output_block(const Context& context, std::int64_t n_outputs, std::int64_t n_rows) {
  if (n_rows >= 4) {
    return n_outputs >= 16 * kBlockW * context.pool.n_threads() ? 4 * kBlockW : 2 * kBlockW;
  }
  const std::int64_t share = n_outputs / (4 * context.pool.n_threads());
  return std::clamp<std::int64_t>(share / 4 * 4, 4, 32);
}

void multiply(Context& context, const tensor::WeightMatrix& w, const float* const* rows,
              std::int64_t n_rows, bool round, float* out, std::int64_t out_stride) {
  const std::int64_t block = output_block(context, w.rows, n_rows);
  const std::int64_t n_blocks = (w.rows + block - 1) / block;
  const std::int64_t n_groups = (n_rows + kBlockX - 1) / kBlockX;
  const std::int64_t rows_at_once = std::min(n_rows, kBlockX);
  // Row groups of one weight block follow each other, so that the block is still in cache.
  context.for_each(n_blocks * n_groups, block * w.cols * rows_at_once,
                   [&](std::int64_t item, int thread) {
                     const std::int64_t first = item / n_groups * block;
                     const std::int64_t count = std::min(block, w.rows - first);
                     const std::int64_t r = item % n_groups * kBlockX;
                     const std::int64_t n = std::min(kBlockX, n_rows - r);
                     float* target = out + r * out_stride + first;
                     multiply_rows(w, first, count, rows + r, n, target, out_stride,
                                   context.scratch(thread).matrix);
                     for (std::int64_t i = 0; round && i < n; ++i) {
                       round_row(target + i * out_stride, count);
                     }
                   });
}

}  // namespace tandem::cpu::fast
