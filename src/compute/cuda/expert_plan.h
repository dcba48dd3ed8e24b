// Which rows each expert gets, made on the device: a step that is replayed routes differently each
// time.
#pragma once

#include <cstdint>

#include "compute/cuda/ops.h"

namespace tandem::cuda {

constexpr std::int32_t kMaxExperts = 512;

// Up to tile_rows rows of one expert.
struct ExpertTile {
  std::int32_t expert = 0;
  std::int32_t first = 0;  // into the lists of the plan
  std::int32_t n = 0;
};

// Pair p = t * top_k + k is the k-th choice of token t. The lists hold all pairs, grouped by
// expert.
struct ExpertPlan {
  const ExpertTile* tiles = nullptr;  // [max_tiles]
  const std::int32_t* n_tiles = nullptr;
  const std::int32_t* pairs = nullptr;   // [n_tokens * top_k]
  const std::int32_t* tokens = nullptr;  // [n_tokens * top_k] the pairs' tokens
  std::int32_t max_tiles = 0;            // what the host launches for
};

// Bytes of scratch that make_expert_plan() takes for n_pairs.
std::int64_t expert_plan_bytes(std::int64_t n_pairs);

class Scratch;

// experts [n_tokens, top_k], ids below kMaxExperts.
ExpertPlan make_expert_plan(const Context& context, Scratch& scratch, const std::int32_t* experts,
                            std::int32_t n_tokens, std::int32_t top_k, std::int32_t tile_rows);

}  // namespace tandem::cuda
