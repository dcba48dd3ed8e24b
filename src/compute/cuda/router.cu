// Chooses experts: one warp per token, scores in double as the oracle has them, so that both choose
// the same experts. SOURCE: model.md 2.11, T29-T31.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::RouteArgs;

constexpr unsigned kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kMaxPerLane = 16;  // 512 experts
constexpr int kMaxTopK = 32;

// sqrt(softplus(x)) without overflow for large x or loss for small x.
__device__ double sqrt_softplus(double x) {
  return sqrt(log1p(exp(-fabs(x))) + (x > 0 ? x : 0.0));
}

struct Best {
  double score;
  int expert;
};

// The better of two; ties go to the lowest id.
__device__ Best better(Best a, Best b) {
  return b.score > a.score || (b.score == a.score && b.expert < a.expert) ? b : a;
}

__device__ Best warp_best(Best best) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    Best other;
    other.score = __shfl_xor_sync(kFullWarp, best.score, mask);
    other.expert = __shfl_xor_sync(kFullWarp, best.expert, mask);
    best = better(best, other);
  }
  return best;
}

// Lane l holds experts l, l + 32, ...; a taken expert's score becomes -infinity. NaN is the lowest
// real score, so broken logits still choose valid ids.
__device__ void choose_best(const RouteArgs& args, const float* logits, std::int32_t* experts) {
  double scores[kMaxPerLane];
  TANDEM_UNROLL
  for (int i = 0; i < kMaxPerLane; ++i) {
    const int e = i * kWarp + lane_id();
    scores[i] = -INFINITY;
    if (e < args.n_experts) {
      const double score = sqrt_softplus(static_cast<double>(logits[e])) +
                           (args.bias != nullptr ? static_cast<double>(args.bias[e]) : 0.0);
      scores[i] = score != score ? -1.7976931348623157e308 : score;
    }
  }
  for (int k = 0; k < args.top_k; ++k) {
    Best best{-INFINITY, args.n_experts};
    TANDEM_UNROLL
    for (int i = 0; i < kMaxPerLane; ++i) {
      const int e = i * kWarp + lane_id();
      if (e < args.n_experts) {
        best = better(best, {scores[i], e});
      }
    }
    best = warp_best(best);
    TANDEM_UNROLL
    for (int i = 0; i < kMaxPerLane; ++i) {
      scores[i] = i * kWarp + lane_id() == best.expert ? -INFINITY : scores[i];
    }
    if (lane_id() == 0) {
      experts[k] = best.expert;
    }
  }
}

__global__ void route_kernel(RouteArgs args) {
  const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id();
  if (t >= args.rows.n_tokens) {
    return;
  }
  const float* logits = args.logits + t * args.n_experts;
  std::int32_t* experts = args.experts + t * args.top_k;
  if (args.tid2eid != nullptr) {
    const std::int32_t* row = args.tid2eid + std::int64_t{args.rows.tokens[t]} * args.top_k;
    if (lane_id() < args.top_k) {
      experts[lane_id()] = row[lane_id()];
    }
  } else {
    choose_best(args, logits, experts);
  }
  __syncwarp();
  // The bias chooses only; the weights are the scores without it (T30).
  double score = 0;
  if (lane_id() < args.top_k) {
    score = sqrt_softplus(static_cast<double>(logits[experts[lane_id()]]));
  }
  double sum = 0;
  for (int k = 0; k < args.top_k; ++k) {
    sum += __shfl_sync(kFullWarp, score, k);
  }
  if (lane_id() < args.top_k) {
    args.weights[t * args.top_k + lane_id()] =
        static_cast<float>(score / sum * static_cast<double>(args.routed_scaling));
  }
}

}  // namespace

void route(const Context& context, const RouteArgs& args) {
  TANDEM_CHECK(args.n_experts <= kMaxPerLane * kWarp && args.top_k <= kMaxTopK,
               std::to_string(args.n_experts) + " experts, " + std::to_string(args.top_k) +
                   " per token: the router has room for 512 and 32");
  launch(route_kernel, dim3(blocks_for(args.rows.n_tokens, kWarps)), dim3(kThreads), 0,
         context.stream, args);
}

}  // namespace tandem::cuda
