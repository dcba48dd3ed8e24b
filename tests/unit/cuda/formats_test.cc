// The parts of kernels that are plain functions, against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "compute/cuda/radix_select.h"

namespace tandem::cuda {
namespace {

TEST(ScoreKey, KeepsTheOrderOfFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rising = {-inf, -3e38F, -1.0F, -1e-40F, 0.0F, 1e-40F, 1.0F, 2.5F, inf};
  for (std::size_t i = 1; i < rising.size(); ++i) {
    EXPECT_LT(score_key(rising[i - 1]), score_key(rising[i])) << rising[i];
  }
  EXPECT_EQ(score_key(-0.0F), score_key(0.0F));
  EXPECT_LT(score_key(std::numeric_limits<float>::quiet_NaN()), score_key(-inf));
}

// Four passes over random scores with many ties, against a full sort.
TEST(RadixSelect, FindsTheThresholdOfASort) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(static_cast<std::size_t>(1 + random() % 300));
    for (float& score : scores) {
      score = static_cast<float>(static_cast<int>(random() % 41) - 20) / 8.0F;
    }
    const auto top_k = static_cast<std::int32_t>(1 + random() % scores.size());
    RadixState state{0, 0, top_k};
    for (int pass = 0; pass < 4; ++pass) {
      std::int32_t counts[kRadixBins] = {};
      for (const float score : scores) {
        const std::uint32_t key = score_key(score);
        if ((key & state.mask) == state.prefix) {
          ++counts[(key >> radix_shift(pass)) % kRadixBins];
        }
      }
      state = next_radix_state(state, pass, counts);
    }
    std::vector<float> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    const float last = sorted[static_cast<std::size_t>(top_k - 1)];
    EXPECT_EQ(state.prefix, score_key(last));
    const auto better =
        std::count_if(scores.begin(), scores.end(), [last](float score) { return score > last; });
    EXPECT_EQ(state.wanted, top_k - better);
  }
}

}  // namespace
}  // namespace tandem::cuda
