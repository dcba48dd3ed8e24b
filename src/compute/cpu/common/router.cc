#include "compute/cpu/common/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::cpu {
namespace {

// The best expert that is not among the first n of `chosen`; ties go to the lowest id. A NaN score
// counts as the lowest, so broken logits still give valid ids.
std::int32_t best_remaining(const kernels::RouteArgs& args, const float* logits,
                            const std::int32_t* chosen, std::int64_t n) {
  std::int32_t best = -1;
  double best_score = 0;
  for (std::int32_t e = 0; e < args.n_experts; ++e) {
    if (std::find(chosen, chosen + n, e) != chosen + n) {
      continue;
    }
    double score = sqrt_softplus(static_cast<double>(logits[e])) +
                   (args.bias != nullptr ? static_cast<double>(args.bias[e]) : 0.0);
    if (std::isnan(score)) {
      score = -std::numeric_limits<double>::infinity();
    }
    if (best < 0 || score > best_score) {
      best = e;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

double sqrt_softplus(double x) {
  return std::sqrt(std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0));
}

void route_token(const kernels::RouteArgs& args, std::int64_t t) {
  const float* logits = args.logits + t * args.n_experts;
  std::int32_t* experts = args.experts + t * args.top_k;
  for (std::int64_t k = 0; k < args.top_k; ++k) {
    experts[k] = args.tid2eid != nullptr
                     ? args.tid2eid[std::int64_t{args.rows.tokens[t]} * args.top_k + k]
                     : best_remaining(args, logits, experts, k);
  }
  // The bias chooses only; the weights are the scores without it (T30).
  double sum = 0;
  for (std::int64_t k = 0; k < args.top_k; ++k) {
    sum += sqrt_softplus(static_cast<double>(logits[experts[k]]));
  }
  for (std::int64_t k = 0; k < args.top_k; ++k) {
    const double score = sqrt_softplus(static_cast<double>(logits[experts[k]]));
    args.weights[t * args.top_k + k] =
        static_cast<float>(score / sum * static_cast<double>(args.routed_scaling));
  }
}

tensor::WeightMatrix expert_of(const kernels::ExpertStack& stack, std::int64_t e) {
  tensor::WeightMatrix w = stack.first;
  w.data = static_cast<const std::uint8_t*>(w.data) + e * stack.data_stride_bytes;
  if (w.scales != nullptr) {
    w.scales += e * stack.scale_stride_bytes;
  }
  return w;
}

}  // namespace tandem::cpu
