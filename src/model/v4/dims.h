// Dims: the sizes that one rank's forward pass works with, after the split over ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::v4 {

struct Dims {
  int tp_rank = 0;
  int tp_size = 1;
  std::int32_t vocab = 0;
  std::int32_t vocab_local = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  std::int32_t sinkhorn_iters = 0;
  std::int32_t q_lora = 0;
  std::int32_t o_lora = 0;
  std::int32_t n_heads = 0;   // on this rank
  std::int32_t n_groups = 0;  // on this rank
  std::int32_t index_heads = 0;
  std::int32_t index_top_k = 0;
  std::int32_t n_experts = 0;
  std::int32_t expert_top_k = 0;
  float norm_eps = 0;
  float hc_eps = 0;
  float swiglu_limit = 0;
  float routed_scaling = 0;

  std::vector<std::int32_t> ratios;  // per main layer

  // DSpark only.
  std::int32_t block_size = 0;  // query slots of a draft pass
  std::int32_t markov_rank = 0;
  TokenId noise_token = 0;
  std::vector<std::int32_t> tap_layers;

  std::int32_t n_layers() const { return static_cast<std::int32_t>(ratios.size()); }
};

}  // namespace tandem::v4
