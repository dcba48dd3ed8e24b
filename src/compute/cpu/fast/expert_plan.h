// ExpertPlan: which rows go to which expert in one step. Its memory stays with the Context.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/kernels/kernels.h"

namespace tandem::cpu::fast {

// One (token, expert) pair.
struct ExpertPair {
  std::int32_t expert;
  std::int32_t token;
  float weight;
};

// The pairs of one expert: pairs first_pair .. first_pair+n_pairs-1 of the plan.
struct ExpertGroup {
  tensor::WeightMatrix w1;
  tensor::WeightMatrix w3;
  tensor::WeightMatrix w2;
  std::int64_t first_pair;
  std::int64_t n_pairs;
};

// A block of outputs of one group.
struct ExpertItem {
  std::int64_t group;
  std::int64_t first;
  std::int64_t count;
};

// Routed experts in rising order of id, their pairs in order of tokens; the shared expert is the
// last group, with every token.
struct ExpertPlan {
  std::vector<ExpertPair> pairs;
  std::vector<ExpertGroup> groups;
  std::vector<ExpertItem> items;

  void build(const kernels::ExpertsArgs& args);
};

}  // namespace tandem::cpu::fast
