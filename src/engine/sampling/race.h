// The race: how a token is drawn from weights. Every token i gets an arrival time E_i / w_i with
// E_i exponential; the first one wins, with probability w_i / sum(w). E_i depends on (seed,
// position, token) only, so the draw does not depend on the batch, on which tokens were filtered
// out, or on whether the position was sampled one by one or verified as a draft. Two distributions
// that are close draw the same token most of the time, which is what a drafter needs.
#pragma once

#include <cstdint>
#include <span>

#include "foundation/base/ids.h"
#include "foundation/base/random.h"

namespace tandem::sampling {

class Race {
 public:
  Race(std::uint64_t seed, Position position)
      : key_(mix64(mix64(seed) ^ static_cast<std::uint64_t>(position))) {}

  // Token `token` with relative weight exp(log_weight), log_weight <= 0, takes part; ties go to the
  // lower id. Enter the likeliest token first: the others then mostly lose without exp and log.
  void enter(TokenId token, double log_weight);

  // The first to arrive; -1 before any entered.
  TokenId winner() const { return winner_; }

 private:
  std::uint64_t key_;
  TokenId winner_ = -1;
  double best_ = 0.0;  // arrival time of the winner
};

// The lowest id of the largest value. REQUIRES: not empty, no NaN.
TokenId argmax(std::span<const float> values);

// Temperatures below this are greedy.
constexpr float kLeastTemperature = 1e-5F;

// The token a drafter proposes: argmax if greedy, else the winner of softmax(logits / T).
TokenId draw_draft(std::span<const float> logits, float temperature, std::uint64_t seed,
                   Position position);

}  // namespace tandem::sampling
