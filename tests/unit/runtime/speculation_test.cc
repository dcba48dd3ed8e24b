// Sampled output with drafts has the distribution of the model: pairs of tokens of 100,000
// sequences against the product of softmaxes, while a good part of the drafts is rejected.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/support/engine_fixture.h"

namespace tandem::runtime {
namespace {

using testing::FakeModel;

constexpr std::size_t kTokens = 5;
constexpr int kSequences = 100'000;
constexpr double kTemperature = 2.5;

std::array<double, kTokens> softmax(std::uint64_t hash) {
  std::array<double, kTokens> p{};
  double sum = 0.0;
  for (std::size_t t = 0; t < kTokens; ++t) {
    p[t] = std::exp(static_cast<double>(FakeModel::logit(hash, t)) / kTemperature);
    sum += p[t];
  }
  for (double& value : p) {
    value /= sum;
  }
  return p;
}

TEST(Speculation, SampledPairsFollowTheModel) {
  testing::FakeModelOptions model;
  model.sizes = testing::fake_sizes();
  model.sizes.vocab = static_cast<std::int32_t>(kTokens);
  model.draft_quality = 0.5;
  EngineOptions options;
  options.max_drafts = 3;
  options.adaptive_drafts = false;
  testing::TestEngine engine(options, model);

  std::array<int, kTokens * kTokens> counts{};
  std::atomic<int> n_running{0};
  for (int i = 0; i < kSequences; ++i) {
    while (n_running >= 64) {
      std::this_thread::yield();
    }
    ++n_running;
    GenerationRequest request = testing::make_request({1, 2, 3}, 4);
    request.sampling.temperature = static_cast<float>(kTemperature);
    auto tokens = std::make_shared<std::vector<TokenId>>();
    const auto sink = [&counts, &n_running, tokens](GenerationEvent event) {
      for (const TokenOutput& output : event.tokens) {
        tokens->push_back(output.token);
      }
      if (event.finish.has_value()) {
        // The second and third token come from draft blocks.
        ++counts[static_cast<std::size_t>((*tokens)[1]) * kTokens +
                 static_cast<std::size_t>((*tokens)[2])];
        --n_running;
      }
    };
    ASSERT_TRUE(engine->submit(std::move(request), sink).ok());
  }
  while (n_running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  std::uint64_t prompt = 1;
  for (const TokenId token : {1, 2, 3}) {
    prompt = FakeModel::extend(prompt, token);
  }
  std::array<double, kTokens * kTokens> expected{};
  const auto first = softmax(prompt);
  for (std::size_t a = 0; a < kTokens; ++a) {
    const std::uint64_t after_a = FakeModel::extend(prompt, static_cast<TokenId>(a));
    const auto second = softmax(after_a);
    for (std::size_t b = 0; b < kTokens; ++b) {
      const auto third = softmax(FakeModel::extend(after_a, static_cast<TokenId>(b)));
      for (std::size_t c = 0; c < kTokens; ++c) {
        expected[b * kTokens + c] += kSequences * first[a] * second[b] * third[c];
      }
    }
  }
  double statistic = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    statistic += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  }
  EXPECT_LT(statistic, 51.2) << "99.9% point of chi-square with 24 degrees";
  const EngineStats stats = engine->stats();
  EXPECT_GT(stats.accepted_tokens_total, kSequences / 2);
  EXPECT_GT(stats.drafted_tokens_total - stats.accepted_tokens_total, kSequences / 10);
}

}  // namespace
}  // namespace tandem::runtime
