#include "compute/cpu/common/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "foundation/base/check.h"

namespace tandem::cpu {
namespace {

// Score for selection of every expert. NaN becomes the lowest score, so broken logits still choose
// valid ids.
void selection_scores(const kernels::RouteArgs& args, const float* logits, double* scores) {
  for (std::int32_t e = 0; e < args.n_experts; ++e) {
    const double score = sqrt_softplus(static_cast<double>(logits[e])) +
                         (args.bias != nullptr ? static_cast<double>(args.bias[e]) : 0.0);
    scores[e] = std::isnan(score) ? -std::numeric_limits<double>::max() : score;
  }
}

// Takes the best experts one after the other; max_element gives ties to the lowest id.
void choose_best(const kernels::RouteArgs& args, const float* logits, std::int32_t* experts) {
  constexpr std::int32_t kMaxExperts = 1024;
  TANDEM_CHECK(args.n_experts <= kMaxExperts, "more experts than the router has room for");
  double scores[kMaxExperts];
  selection_scores(args, logits, scores);
  for (std::int64_t k = 0; k < args.top_k; ++k) {
    double* best = std::max_element(scores, scores + args.n_experts);
    experts[k] = static_cast<std::int32_t>(best - scores);
    *best = -std::numeric_limits<double>::infinity();
  }
}

}  // namespace

double sqrt_softplus(double x) {
  return std::sqrt(std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0));
}

void route_token(const kernels::RouteArgs& args, std::int64_t t) {
  const float* logits = args.logits + t * args.n_experts;
  std::int32_t* experts = args.experts + t * args.top_k;
  if (args.tid2eid != nullptr) {
    const std::int32_t* row = args.tid2eid + std::int64_t{args.rows.tokens[t]} * args.top_k;
    std::copy(row, row + args.top_k, experts);
  } else {
    choose_best(args, logits, experts);
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
