#include "compute/cpu/fast/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace tandem::cpu {
namespace {

std::vector<std::int32_t> by_sorting(const std::vector<float>& scores, std::int64_t k) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(k));
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<std::int32_t> selected(const std::vector<float>& scores, std::int64_t k) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(k), -1);
  select_top_k(scores.data(), static_cast<std::int64_t>(scores.size()), k, out.data());
  return out;
}

TEST(TopK, EqualsAStableSortWithManyTies) {
  std::mt19937 engine(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> scores(1 + engine() % 700);
    const float step = round % 2 == 0 ? 0.5F : 1e-7F;
    for (float& score : scores) {
      score = step * static_cast<float>(static_cast<int>(engine() % 64) - 32);
    }
    const auto k = static_cast<std::int64_t>(1 + engine() % scores.size());
    ASSERT_EQ(selected(scores, k), by_sorting(scores, k)) << round;
  }
}

TEST(TopK, ZerosTieAndNanIsLowest) {
  const std::vector<float> scores = {NAN, -0.0F, 0.0F, -INFINITY, -NAN, 0.0F};
  EXPECT_EQ(selected(scores, 2), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(selected(scores, 4), (std::vector<std::int32_t>{1, 2, 3, 5}));
  EXPECT_EQ(selected(scores, 5), (std::vector<std::int32_t>{0, 1, 2, 3, 5}));
}

}  // namespace
}  // namespace tandem::cpu
