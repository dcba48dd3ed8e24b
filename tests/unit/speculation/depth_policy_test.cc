#include "engine/speculation/depth_policy.h"

#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace tandem::speculation {
namespace {

DepthOptions options(std::int32_t max_drafts) {
  DepthOptions options;
  options.max_drafts = max_drafts;
  return options;
}

// Steps whose rows cost `us_per_row` over a fixed part; one call of depths() per step.
void measure(DepthPolicy& policy, double fixed_us, double us_per_row) {
  for (std::int64_t rows = 1; rows <= 40; ++rows) {
    policy.record_step(rows, fixed_us + us_per_row * static_cast<double>(rows));
  }
}

// Blocks of n drafts, each accepted with probability p if those before were.
void verify(DepthPolicy& policy, std::int32_t n, double p, int n_blocks) {
  Random random(5);
  for (int i = 0; i < n_blocks; ++i) {
    std::int32_t accepted = 0;
    while (accepted < n && random.uniform() < p) {
      ++accepted;
    }
    policy.record_block(n, accepted);
  }
}

TEST(CostTable, ExpertsAreSharedBetweenRows) {
  EXPECT_NEAR(expected_unique_experts(1, 256, 6), 6.0, 1e-9);
  EXPECT_NEAR(expected_unique_experts(6, 256, 6), 33.96, 0.05);
  EXPECT_LT(expected_unique_experts(1'000, 256, 6), 256.0 + 1e-9);
}

TEST(CostTable, MeasuredValuesRuleAndGapsAreFilled) {
  CostTable costs({256, 6, 0.5});
  EXPECT_NEAR(costs.step_us(1), 1.0, 1e-9);
  EXPECT_GT(costs.step_us(6), 2.0);
  costs.record(2, 100.0);
  costs.record(6, 300.0);
  EXPECT_EQ(costs.step_us(2), 100.0);
  EXPECT_NEAR(costs.step_us(4), 200.0, 1e-9);
  EXPECT_LT(costs.step_us(1), 100.0);
  EXPECT_GT(costs.step_us(12), 300.0);
  for (int i = 0; i < 200; ++i) {
    costs.record(2, 150.0);
  }
  EXPECT_NEAR(costs.step_us(2), 150.0, 1.0);
}

TEST(DepthPolicy, GoesDeepWhenRowsAreCheapAndDraftsGood) {
  DepthPolicy policy(options(4));
  measure(policy, 10'000.0, 50.0);
  verify(policy, 4, 0.9, 500);
  const std::vector<std::int32_t> rooms{9, 9};
  EXPECT_EQ(policy.depths(rooms), (std::vector<std::int32_t>{4, 4}));
  const std::vector<std::int32_t> small{1, 0};
  EXPECT_EQ(policy.depths(small), small) << "never more than the room";
}

TEST(DepthPolicy, StopsWhenARowCostsMoreThanItGives) {
  DepthPolicy policy(options(4));
  measure(policy, 1'000.0, 900.0);
  verify(policy, 4, 0.3, 500);
  const std::vector<std::int32_t> rooms{4};
  EXPECT_EQ(policy.depths(rooms), std::vector<std::int32_t>{0});
}

TEST(DepthPolicy, IsInBetweenInBetween) {
  DepthPolicy policy(options(4));
  measure(policy, 10'000.0, 3'000.0);
  verify(policy, 4, 0.6, 500);
  // 13 ms for one token; each further row takes 3 ms for 0.6, 0.36, 0.216 tokens.
  const std::vector<std::int32_t> rooms{4};
  EXPECT_EQ(policy.depths(rooms), std::vector<std::int32_t>{2});
  policy.record_draft(4, 40'000.0);
  EXPECT_EQ(policy.depths(rooms), std::vector<std::int32_t>{0}) << "drafting is not free either";
}

TEST(DepthPolicy, ConfidentSequencesGetTheRows) {
  DepthPolicy policy(options(5));
  measure(policy, 10'000.0, 3'000.0);
  const auto cut = policy.cut({{0.99F, 0.98F, 0.97F, 0.2F, 0.9F}, {0.1F, 0.9F, 0.9F, 0.9F, 0.9F}});
  EXPECT_EQ(cut, (std::vector<std::int32_t>{3, 0})) << "survival counts, not the single confidence";
}

TEST(DepthPolicy, KeepsTryingSoThatItCanChangeItsMind) {
  DepthPolicy policy(options(2));
  const std::vector<std::int32_t> rooms{2};
  int n_tries = 0;
  verify(policy, 2, 0.0, 500);
  for (int i = 0; i < 640; ++i) {
    policy.record_step(1, 1'000.0);
    policy.record_step(2, 1'900.0);
    n_tries += policy.depths(rooms)[0] > 0 ? 1 : 0;
  }
  EXPECT_GT(n_tries, 5);
  EXPECT_LT(n_tries, 40);
}

TEST(DepthPolicy, FixedDepthIsFixed) {
  DepthOptions fixed = options(3);
  fixed.adaptive = false;
  DepthPolicy policy(fixed);
  measure(policy, 1.0, 1'000.0);
  verify(policy, 3, 0.0, 100);
  const std::vector<std::int32_t> rooms{5, 2};
  EXPECT_EQ(policy.depths(rooms), (std::vector<std::int32_t>{3, 2}));
}

TEST(DepthPolicy, CountsPerPosition) {
  DepthPolicy policy(options(3));
  policy.record_block(3, 3);
  policy.record_block(3, 1);
  policy.record_block(1, 0);
  EXPECT_EQ(policy.counters()[0].drafted, 3);
  EXPECT_EQ(policy.counters()[0].accepted, 2);
  EXPECT_EQ(policy.counters()[1].drafted, 2);
  EXPECT_EQ(policy.counters()[1].accepted, 1);
  EXPECT_EQ(policy.counters()[2].drafted, 2);
  EXPECT_EQ(policy.counters()[2].accepted, 1);
}

}  // namespace
}  // namespace tandem::speculation
