// SamplingParams: how one sequence chooses its next token. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::sampling {

struct SamplingParams {
  float temperature = 1.0F;         // 0 = greedy (lowest id wins ties)
  float top_p = 1.0F;               // (0, 1]
  int top_k = 0;                    // 0 = all
  float min_p = 0.0F;               // [0, 1]
  float presence_penalty = 0.0F;    // [-2, 2], over generated tokens
  float frequency_penalty = 0.0F;   // [-2, 2], over generated tokens
  float repetition_penalty = 1.0F;  // > 0, over prompt and generated tokens
  std::optional<std::uint64_t> seed;
  std::vector<std::pair<TokenId, float>> logit_bias;
  int n_logprobs = -1;  // -1: none; 0: of the chosen token only; n: and of the n best
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0F;  // natural log of the probability after penalties, bias and mask, T = 1
};

}  // namespace tandem::sampling
