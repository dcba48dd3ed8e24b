#include "compute/cpu/fast/expert_plan.h"

#include <algorithm>

#include "compute/cpu/common/router.h"

namespace tandem::cpu::fast {

void ExpertPlan::build(const kernels::ExpertsArgs& args) {
  pairs.clear();
  groups.clear();
  for (std::int32_t t = 0; t < args.n_tokens; ++t) {
    for (std::int64_t k = 0; k < args.top_k; ++k) {
      const std::int64_t i = std::int64_t{t} * args.top_k + k;
      pairs.push_back({args.experts[i], t, args.weights[i]});
    }
  }
  std::sort(pairs.begin(), pairs.end(), [](const ExpertPair& a, const ExpertPair& b) {
    return a.expert != b.expert ? a.expert < b.expert : a.token < b.token;
  });
  const auto n_routed = static_cast<std::int64_t>(pairs.size());
  for (std::int64_t i = 0; i < n_routed;) {
    const std::int32_t expert = pairs[static_cast<std::size_t>(i)].expert;
    std::int64_t end = i;
    while (end < n_routed && pairs[static_cast<std::size_t>(end)].expert == expert) {
      ++end;
    }
    groups.push_back({expert_of(args.w1, expert), expert_of(args.w3, expert),
                      expert_of(args.w2, expert), i, end - i});
    i = end;
  }
  for (std::int32_t t = 0; t < args.n_tokens; ++t) {
    pairs.push_back({-1, t, 1.0F});
  }
  groups.push_back({args.shared_w1, args.shared_w3, args.shared_w2, n_routed, args.n_tokens});
}

}  // namespace tandem::cpu::fast
