// Matrix products. SOURCE: model.md 2.0 lin8, lin4, linb, lin32.
#include "compute/cuda/linear_mma.h"
#include "compute/cuda/mma_matrix.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/plain_matrix.h"
#include "compute/cuda/quantise.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::LinearArgs;
using kernels::LinearKind;

constexpr unsigned kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kRows = 8;  // rows that share one read of the weights

__global__ void plain_kernel(bool round, LinearArgs args) {
  const std::int64_t o = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kRows;
  if (o >= args.w.rows) {
    return;
  }
  float sums[kRows] = {};
  for (std::int64_t c = lane_id(); c < args.w.cols; c += kWarp) {
    const float weight = weight_at(args.w, o, c);
    TANDEM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (first + r < args.n_rows) {
        sums[r] += weight * args.x[(first + r) * args.x_stride + c];
      }
    }
  }
  TANDEM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (first + r < args.n_rows) {
      const float sum = warp_sum(sums[r]);
      if (lane_id() == 0) {
        args.out[(first + r) * args.out_stride + o] = rounded(round, sum);
      }
    }
  }
}

bool quantises_input(const Context& context, LinearKind kind) {
  return context.native && (kind == LinearKind::kQuantised || kind == LinearKind::kPartial);
}

bool rounds_output(const Context& context, LinearKind kind) {
  return context.native && (kind == LinearKind::kQuantised || kind == LinearKind::kBf16);
}

void plain(const Context& context, const LinearArgs& args) {
  const auto run = [&](const LinearArgs& part) {
    launch(plain_kernel, dim3(blocks_for(part.w.rows, kWarps), blocks_for(part.n_rows, kRows)),
           dim3(kThreads), 0, context.stream, rounds_output(context, args.kind), part);
  };
  if (!quantises_input(context, args.kind)) {
    run(args);
    return;
  }
  Scratch scratch(context);
  const std::int64_t cols = args.w.cols;
  const std::int64_t row_bytes = cols * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t per_pass = rows_per_pass(scratch, row_bytes, args.n_rows);
  auto* inputs = scratch.take<float>(per_pass * cols);
  for (std::int64_t first = 0; first < args.n_rows; first += per_pass) {
    LinearArgs part = args;
    part.n_rows = per_pass < args.n_rows - first ? per_pass : args.n_rows - first;
    quantise_rows(context, args.x + first * args.x_stride, args.x_stride, part.n_rows, cols, inputs,
                  cols);
    part.x = inputs;
    part.x_stride = cols;
    part.out = args.out + first * args.out_stride;
    run(part);
  }
}

}  // namespace

// Activations are bf16 values under native numerics, so their products are exact on tensor cores.
void linear(const Context& context, const LinearArgs& args) {
  if (context.native && fits_mma(args.w)) {
    linear_mma(context, args, quantises_input(context, args.kind),
               rounds_output(context, args.kind));
  } else {
    plain(context, args);
  }
}

}  // namespace tandem::cuda
