#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engine/sampling/race.h"

namespace tandem::sampling {
namespace {

constexpr int kDraws = 100'000;

SampleOutput sample(const SamplingParams& params, const SampleInput& input) {
  Sampler sampler;
  auto out = sampler.sample(params, input);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return *out;
}

std::map<TokenId, int> draws(const SamplingParams& params, const std::vector<float>& logits) {
  Sampler sampler;
  std::map<TokenId, int> counts;
  SampleInput input;
  input.logits = logits;
  input.seed = 42;
  for (int i = 0; i < kDraws; ++i) {
    input.position = i;
    ++counts[sampler.sample(params, input)->token];
  }
  return counts;
}

// Pearson's statistic against the weights of the tokens that may be drawn.
double chi_square(const std::map<TokenId, int>& counts, const std::map<TokenId, double>& weights) {
  double total = 0.0;
  for (const auto& entry : weights) {
    total += entry.second;
  }
  double statistic = 0.0;
  for (const auto& entry : weights) {
    const double expected = kDraws * entry.second / total;
    const auto found = counts.find(entry.first);
    const double seen = found == counts.end() ? 0.0 : found->second;
    statistic += (seen - expected) * (seen - expected) / expected;
  }
  return statistic;
}

const std::vector<float> kLogits{1.0F, 0.5F, -0.5F, 2.0F, 0.0F, 1.5F, -1.0F, 0.75F};

TEST(Sampler, DrawsFromTheSoftmax) {
  SamplingParams params;
  params.temperature = 0.8F;
  std::map<TokenId, double> weights;
  for (std::size_t i = 0; i < kLogits.size(); ++i) {
    weights[static_cast<TokenId>(i)] = std::exp(kLogits[i] / 0.8);
  }
  const auto counts = draws(params, kLogits);
  EXPECT_LT(chi_square(counts, weights), 24.3) << "99.9% point of chi-square with 7 degrees";
  weights[0] *= 1.1;
  EXPECT_GT(chi_square(counts, weights), 24.3) << "the test must see a 10% error";
}

TEST(Sampler, FiltersKeepTheRightTokensAndTheirRatios) {
  const auto weight = [](TokenId t) { return std::exp(kLogits[static_cast<std::size_t>(t)]); };
  SamplingParams top_k;
  top_k.top_k = 3;
  EXPECT_LT(chi_square(draws(top_k, kLogits), {{3, weight(3)}, {5, weight(5)}, {0, weight(0)}}),
            13.8);
  SamplingParams top_p;
  top_p.top_p = 0.5F;  // 0.376 + 0.228 of token 3 and 5
  EXPECT_LT(chi_square(draws(top_p, kLogits), {{3, weight(3)}, {5, weight(5)}}), 10.8);
  EXPECT_EQ(draws(top_p, kLogits).size(), 2U);
  SamplingParams min_p;
  min_p.min_p = 0.25F;  // logit at least 2 - 1.386
  EXPECT_EQ(draws(min_p, kLogits).size(), 4U);
  SamplingParams narrow;
  narrow.top_p = 0.01F;
  narrow.min_p = 1.0F;
  EXPECT_EQ(draws(narrow, kLogits).size(), 1U) << "one token always survives";
}

TEST(Sampler, TopPSeesTheWholeVocabularyNotOnlyItsHead) {
  std::vector<float> flat(5'000, 0.0F);
  SamplingParams params;
  params.top_p = 0.9F;
  SampleInput input;
  input.logits = flat;
  std::set<TokenId> seen;
  Sampler sampler;
  for (int i = 0; i < 2'000; ++i) {
    input.position = i;
    seen.insert(sampler.sample(params, input)->token);
  }
  EXPECT_LT(*seen.rbegin(), 4'500) << "equal tokens leave by highest id first";
  EXPECT_GT(*seen.rbegin(), 4'300);
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheBest) {
  SamplingParams greedy;
  greedy.temperature = 0.0F;
  const std::vector<float> logits{0.0F, 3.0F, 3.0F, 1.0F};
  SampleInput input;
  input.logits = logits;
  EXPECT_EQ(sample(greedy, input).token, 1);
  const std::vector<float> equal(9, 0.25F);
  input.logits = equal;
  EXPECT_EQ(sample(greedy, input).token, 0);
}

TEST(Sampler, TheDrawDependsOnSeedAndPositionOnly) {
  SamplingParams params;
  SampleInput input;
  input.logits = kLogits;
  input.seed = 5;
  int differs_by_seed = 0;
  int differs_by_position = 0;
  for (Position p = 0; p < 200; ++p) {
    input.position = p;
    const TokenId token = sample(params, input).token;
    EXPECT_EQ(sample(params, input).token, token);
    SampleInput other = input;
    other.seed = 6;
    differs_by_seed += sample(params, other).token != token ? 1 : 0;
    other = input;
    other.position = p + 1'000;
    differs_by_position += sample(params, other).token != token ? 1 : 0;
  }
  EXPECT_GT(differs_by_seed, 50);
  EXPECT_GT(differs_by_position, 50);
}

TEST(Sampler, PenaltiesFollowTheirDefinitions) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_logprobs = 4;
  TokenCounts counts;
  const std::vector<TokenId> prompt{0, 1};
  counts.add_prompt(prompt);
  counts.add_generated(1);
  counts.add_generated(1);
  counts.add_generated(2);
  const std::vector<float> logits{1.0F, 4.0F, -1.0F, 0.0F};
  SampleInput input;
  input.logits = logits;
  input.counts = &counts;
  const auto adjusted = [&](TokenId token) {
    const SampleOutput out = sample(params, input);
    float base = 0.0F;
    float value = 0.0F;
    for (const TokenLogprob& best : out.best) {
      (best.token == 3 ? base : value) =
          best.token == 3 || best.token == token ? best.logprob : value;
    }
    return value - base;  // token 3 has logit 0 and no penalty
  };
  params.repetition_penalty = 2.0F;
  EXPECT_NEAR(adjusted(0), 0.5F, 1e-5F);
  EXPECT_NEAR(adjusted(2), -2.0F, 1e-5F);
  params.repetition_penalty = 1.0F;
  params.presence_penalty = 0.5F;
  params.frequency_penalty = 0.25F;
  EXPECT_NEAR(adjusted(0), 1.0F, 1e-5F) << "prompt tokens only count for repetition";
  EXPECT_NEAR(adjusted(1), 3.0F, 1e-5F);
}

TEST(Sampler, MaskAndBiasDecideWhatMayCome) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_logprobs = 8;
  const std::vector<std::uint32_t> mask{(1U << 2U) | (1U << 4U)};
  SampleInput input;
  input.logits = kLogits;
  input.mask = mask;
  SampleOutput out = sample(params, input);
  EXPECT_EQ(out.token, 4);
  ASSERT_EQ(out.best.size(), 2U) << "masked tokens have no probability to report";
  EXPECT_NEAR(std::exp(out.best[0].logprob) + std::exp(out.best[1].logprob), 1.0F, 1e-5F);
  params.logit_bias = {{2, 10.0F}};
  EXPECT_EQ(sample(params, input).token, 2);
  params.temperature = 1.0F;
  for (Position p = 0; p < 1'000; ++p) {
    input.position = p;
    const TokenId token = sample(params, input).token;
    EXPECT_TRUE(token == 2 || token == 4);
  }
  const std::vector<std::uint32_t> nothing{0};
  input.mask = nothing;
  Sampler sampler;
  EXPECT_FALSE(sampler.sample(params, input).ok());
}

TEST(Sampler, ForcedTokenReportsItsOwnLogprob) {
  SamplingParams params;
  params.n_logprobs = 1;
  SampleInput input;
  input.logits = kLogits;
  input.forced = 6;
  const SampleOutput out = sample(params, input);
  EXPECT_EQ(out.token, 6);
  EXPECT_NEAR(*out.logprob, out.best[0].logprob - 3.0F, 1e-5F);
  EXPECT_EQ(out.best[0].token, 3);
}

TEST(Sampler, ANonFiniteLogitIsAnErrorThatNamesIt) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits = kLogits;
    logits[5] = bad;
    SampleInput input;
    input.logits = logits;
    Sampler sampler;
    const auto out = sampler.sample({}, input);
    ASSERT_FALSE(out.ok());
    EXPECT_NE(out.status().message().find("non_finite_logits: the logit of token 5"),
              std::string::npos);
  }
}

TEST(Race, ADraftFromTheSameLogitsIsTheSameToken) {
  SamplingParams params;
  params.temperature = 0.7F;
  std::vector<float> near = kLogits;
  near[1] += 0.1F;
  int same = 0;
  for (Position p = 0; p < 2'000; ++p) {
    SampleInput input;
    input.logits = kLogits;
    input.seed = 3;
    input.position = p;
    const TokenId token = sample(params, input).token;
    EXPECT_EQ(draw_draft(kLogits, 0.7F, 3, p), token);
    same += draw_draft(near, 0.7F, 3, p) == token ? 1 : 0;
  }
  EXPECT_GT(same, 1'900) << "close distributions must agree most of the time";
  EXPECT_LT(same, 2'000);
  EXPECT_EQ(draw_draft(kLogits, 0.0F, 3, 0), 3);
}

TEST(SamplingParams, ValidateNamesTheParameter) {
  SamplingParams params;
  EXPECT_TRUE(validate(params, 8).ok());
  params.top_p = 0.0F;
  EXPECT_NE(validate(params, 8).message().find("top_p is 0"), std::string::npos);
  params = {};
  params.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(validate(params, 8).ok());
  params = {};
  params.logit_bias = {{8, 1.0F}};
  EXPECT_NE(validate(params, 8).message().find("token 8"), std::string::npos);
}

}  // namespace
}  // namespace tandem::sampling
