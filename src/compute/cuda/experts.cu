// Routed and shared experts with clamped SwiGLU. SOURCE: model.md 2.11, traps T32-T34.
//
// Slot k < top_k of a token is its k-th routed expert, slot top_k the shared one. First the gated
// hidden rows of all slots, then their products with w2, added in rising order of expert id, the
// shared one last.
#include "compute/cuda/experts_mma.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/plain_matrix.h"
#include "compute/cuda/quantise.h"
#include "compute/cuda/scratch.h"
#include "compute/cuda/swiglu.h"

namespace tandem::cuda {
namespace {

using kernels::ExpertsArgs;

constexpr unsigned kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

// hidden[(t * n_slots + slot) * inter + i].
__global__ void hidden_kernel(bool native, ExpertsArgs args, std::int32_t first_token,
                              const float* x, float* hidden) {
  const std::int64_t inter = args.shared_w1.rows;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  const std::int32_t n_slots = args.top_k + 1;
  const auto slot = static_cast<std::int32_t>(blockIdx.y) % n_slots;
  const std::int32_t local = static_cast<std::int32_t>(blockIdx.y) / n_slots;
  if (i >= inter) {
    return;
  }
  const std::int64_t pick = std::int64_t{first_token + local} * args.top_k + slot;
  const bool shared = slot == args.top_k;
  const tensor::WeightMatrix w1 = shared ? args.shared_w1 : expert_of(args.w1, args.experts[pick]);
  const tensor::WeightMatrix w3 = shared ? args.shared_w3 : expert_of(args.w3, args.experts[pick]);
  const float* row = x + std::int64_t{local} * args.hidden;
  const float gate = warp_dot(w1, i, row);
  const float up = warp_dot(w3, i, row);
  if (lane_id() == 0) {
    hidden[static_cast<std::int64_t>(blockIdx.y) * inter + i] =
        gated(native, gate, up, args.swiglu_limit, shared ? 1.0F : args.weights[pick]);
  }
}

__global__ void output_kernel(ExpertsArgs args, std::int32_t first_token, const float* hidden) {
  const std::int64_t inter = args.shared_w1.rows;
  const std::int64_t o = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  const std::int32_t local = static_cast<std::int32_t>(blockIdx.y);
  if (o >= args.hidden) {
    return;
  }
  const std::int64_t t = first_token + local;
  const float* rows = hidden + std::int64_t{local} * (args.top_k + 1) * inter;
  float sum = 0;
  std::int32_t last = -1;
  for (std::int32_t n = 0; n < args.top_k; ++n) {
    const std::int32_t slot = next_slot(args.experts + t * args.top_k, args.top_k, last);
    last = args.experts[t * args.top_k + slot];
    sum += warp_dot(expert_of(args.w2, last), o, rows + slot * inter);
  }
  sum += warp_dot(args.shared_w2, o, rows + args.top_k * inter);
  if (lane_id() == 0) {
    args.out[t * args.hidden + o] = sum;
  }
}

void plain(const Context& context, const ExpertsArgs& args) {
  const std::int64_t inter = args.shared_w1.rows;
  const std::int32_t n_slots = args.top_k + 1;
  Scratch scratch(context);
  const std::int64_t row_floats = args.hidden + n_slots * inter;
  const std::int32_t fit =
      rows_per_pass(scratch, row_floats * static_cast<std::int64_t>(sizeof(float)), args.n_tokens);
  const std::int32_t most = 65535 / n_slots;  // blocks of one launch
  const std::int32_t per_pass = fit < most ? fit : most;
  auto* inputs = scratch.take<float>(per_pass * std::int64_t{args.hidden});
  auto* hidden = scratch.take<float>(per_pass * n_slots * inter);
  for (std::int32_t first = 0; first < args.n_tokens; first += per_pass) {
    const std::int32_t n = per_pass < args.n_tokens - first ? per_pass : args.n_tokens - first;
    const float* x = args.x + std::int64_t{first} * args.hidden;
    if (context.native) {
      quantise_rows(context, x, args.hidden, n, args.hidden, inputs, args.hidden);
      x = inputs;
    }
    launch(hidden_kernel, dim3(blocks_for(inter, kWarps), static_cast<unsigned>(n * n_slots)),
           dim3(kThreads), 0, context.stream, context.native, args, first, x, hidden);
    if (context.native) {
      quantise_rows(context, hidden, inter, std::int64_t{n} * n_slots, inter, hidden, inter);
    }
    launch(output_kernel, dim3(blocks_for(args.hidden, kWarps), static_cast<unsigned>(n)),
           dim3(kThreads), 0, context.stream, args, first, static_cast<const float*>(hidden));
  }
}

}  // namespace

void experts(const Context& context, const ExpertsArgs& args) {
  if (context.native && experts_fit_mma(args)) {
    experts_mma(context, args);
  } else {
    plain(context, args);
  }
}

}  // namespace tandem::cuda
