// What one sequence gets depends on itself only.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/engine_fixture.h"

namespace tandem::runtime {
namespace {

using testing::Collected;
using testing::FakeModelOptions;
using testing::greedy_tokens;
using testing::make_prompt;
using testing::make_request;
using testing::TestEngine;

constexpr TokenId kThinkEnd = 5;

FakeModelOptions fake() {
  FakeModelOptions options;
  options.sizes = testing::fake_sizes();
  return options;
}

EngineOptions engine_options() {
  EngineOptions options;
  options.think_end_token = kThinkEnd;
  options.reserve_new_tokens = 16;
  options.adaptive_drafts = false;
  options.host = "head";
  return options;
}

// A mix of everything that sampling knows.
std::vector<GenerationRequest> mixed_requests() {
  std::vector<GenerationRequest> requests;
  for (std::uint64_t i = 0; i < 12; ++i) {
    GenerationRequest request = make_request(make_prompt(i, 1 + 17 * i), 30);
    request.sampling.temperature = i % 3 == 0 ? 0.0F : 0.4F * static_cast<float>(i % 3);
    request.sampling.seed = 1'000 + i;
    request.sampling.top_p = i % 4 == 1 ? 0.9F : 1.0F;
    request.sampling.top_k = i % 5 == 2 ? 10 : 0;
    request.sampling.frequency_penalty = i % 2 == 1 ? 0.5F : 0.0F;
    request.sampling.repetition_penalty = i % 6 == 5 ? 1.2F : 1.0F;
    request.sampling.n_logprobs = i % 4 == 0 ? 3 : -1;
    request.stop_tokens = {static_cast<TokenId>(i)};
    request.thinking.starts_in_thinking = i % 3 == 1;
    request.thinking.max_tokens = i % 3 == 1 ? 7 : -1;
    requests.push_back(std::move(request));
  }
  return requests;
}

// Each alone, on one rank, without speculation: what all other ways must equal.
std::vector<Collected> reference() {
  std::vector<Collected> all;
  for (GenerationRequest& request : mixed_requests()) {
    TestEngine engine(engine_options(), fake());
    std::vector<GenerationRequest> one;
    one.push_back(std::move(request));
    all.push_back(engine.generate(std::move(one))[0]);
  }
  return all;
}

void expect_same(const std::vector<Collected>& found, const std::vector<Collected>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens) << "sequence " << i;
    EXPECT_EQ(found[i].finish->reason, expected[i].finish->reason);
    EXPECT_EQ(found[i].finish->usage.thinking_tokens, expected[i].finish->usage.thinking_tokens);
    for (std::size_t t = 0; t < found[i].outputs.size(); ++t) {
      EXPECT_EQ(found[i].outputs[t].logprob, expected[i].outputs[t].logprob);
      EXPECT_EQ(found[i].outputs[t].best.size(), expected[i].outputs[t].best.size());
    }
  }
}

TEST(Engine, GreedyIsTheArgmaxOfTheModel) {
  TestEngine engine(engine_options(), fake());
  const auto prompt = make_prompt(1, 200);
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request(prompt, 40));
  const Collected found = engine.generate(std::move(requests))[0];
  EXPECT_EQ(found.tokens, greedy_tokens(prompt, 40));
  EXPECT_EQ(found.finish->reason, FinishReason::kLength);
  EXPECT_EQ(found.finish->usage.prompt_tokens, 200);
  EXPECT_EQ(found.finish->usage.completion_tokens, 40);
  EXPECT_EQ(engine->stats().generation_tokens_total, 40);
}

TEST(Engine, BatchRanksDraftsAndPreemptionChangeNothing) {
  const std::vector<Collected> expected = reference();
  for (const int n_ranks : {1, 2}) {
    for (const int max_drafts : {0, 1, 4}) {
      EngineOptions options = engine_options();
      options.max_drafts = max_drafts;
      TestEngine engine(options, fake(), n_ranks);
      expect_same(engine.generate(mixed_requests()), expected);
      const EngineStats stats = engine->stats();
      EXPECT_EQ(stats.running + stats.waiting, 0);
      EXPECT_EQ(stats.kv_pages_used, 0);
      EXPECT_EQ(stats.accepted_tokens_total > 0, max_drafts > 0);
      EXPECT_TRUE(engine.stop().ok());
      EXPECT_TRUE(engine.worker_status(static_cast<std::size_t>(n_ranks) - 1).ok());
    }
  }
  FakeModelOptions tight = fake();
  tight.sizes.n_pages = 20;
  EngineOptions options = engine_options();
  options.max_drafts = 3;
  options.reserve_new_tokens = 1;
  TestEngine engine(options, tight, 2);
  expect_same(engine.generate(mixed_requests()), expected);
  std::vector<GenerationRequest> long_ones;
  for (std::uint64_t i = 0; i < 8; ++i) {
    long_ones.push_back(make_request(make_prompt(i, 30), 100));
  }
  const auto found = engine.generate(std::move(long_ones));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(found[i].tokens, greedy_tokens(make_prompt(i, 30), 100));
  }
  EXPECT_GT(engine->stats().preemptions_total, 0);
}

TEST(Engine, ARequestMayAskForNoDrafts) {
  EngineOptions options = engine_options();
  options.max_drafts = 4;
  TestEngine engine(options, fake());
  std::vector<GenerationRequest> requests;
  for (std::uint64_t i = 0; i < 4; ++i) {
    requests.push_back(make_request(make_prompt(i, 20), 60));
    requests.back().speculate = i % 2 == 0;
  }
  const auto found = engine.generate(std::move(requests));
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].tokens, greedy_tokens(make_prompt(i, 20), 60));
    EXPECT_EQ(found[i].finish->usage.drafted_tokens > 0, i % 2 == 0);
  }
}

TEST(Engine, DraftsSaveSteps) {
  const auto prompt = make_prompt(3, 20);
  std::int64_t steps[2];
  for (const int max_drafts : {0, 4}) {
    EngineOptions options = engine_options();
    options.max_drafts = max_drafts;
    TestEngine engine(options, fake());
    std::vector<GenerationRequest> requests;
    requests.push_back(make_request(prompt, 200));
    const Collected found = engine.generate(std::move(requests))[0];
    EXPECT_EQ(found.tokens, greedy_tokens(prompt, 200));
    steps[max_drafts / 4] = engine->stats().steps_total;
    EXPECT_EQ(found.finish->usage.drafted_tokens > 0, max_drafts > 0);
    EXPECT_GE(found.finish->usage.drafted_tokens, found.finish->usage.accepted_tokens);
    const EngineStats stats = engine->stats();
    ASSERT_EQ(stats.drafted_by_position.size(), static_cast<std::size_t>(max_drafts));
    for (std::size_t j = 0; j < stats.drafted_by_position.size(); ++j) {
      EXPECT_GT(stats.accepted_by_position[j], 0);
      EXPECT_GE(stats.drafted_by_position[j], stats.accepted_by_position[j]);
    }
  }
  EXPECT_LT(steps[1] * 2, steps[0]);
}

TEST(Engine, StopTokenEndsAndIsReportedLast) {
  const auto prompt = make_prompt(4, 30);
  const auto tokens = greedy_tokens(prompt, 50);
  for (const int max_drafts : {0, 4}) {
    EngineOptions options = engine_options();
    options.max_drafts = max_drafts;
    TestEngine engine(options, fake());
    std::vector<GenerationRequest> requests;
    requests.push_back(make_request(prompt, 50));
    requests.back().stop_tokens = {tokens[9]};
    requests.push_back(make_request(prompt, 50));
    requests.back().stop_tokens = {tokens[9]};
    requests.back().ignore_eos = true;
    const auto found = engine.generate(std::move(requests));
    EXPECT_EQ(found[0].finish->reason, FinishReason::kStop);
    EXPECT_EQ(found[0].tokens.back(), tokens[9]);
    EXPECT_LE(found[0].tokens.size(), 10U);
    EXPECT_EQ(found[1].tokens.size(), 50U);
  }
}

TEST(Engine, ThinkingBudgetForcesTheEndOfThinking) {
  const auto prompt = make_prompt(5, 30);
  for (const int budget : {0, 1, 6}) {
    for (const int max_drafts : {0, 4}) {
      EngineOptions options = engine_options();
      options.max_drafts = max_drafts;
      FakeModelOptions model = fake();
      // The model itself would never end its thinking.
      model.edit_logits = [](std::size_t, TokenId, std::span<float> row) {
        row[kThinkEnd] = -9.0F;
      };
      TestEngine engine(options, model);
      std::vector<GenerationRequest> requests;
      requests.push_back(make_request(prompt, 20));
      requests.back().thinking = {true, budget};
      const Collected found = engine.generate(std::move(requests))[0];
      EXPECT_EQ(found.tokens[static_cast<std::size_t>(budget)], kThinkEnd);
      EXPECT_EQ(std::count(found.tokens.begin(), found.tokens.end(), kThinkEnd), 1);
      EXPECT_EQ(found.finish->usage.thinking_tokens, budget);
      EXPECT_EQ(found.tokens.size(), 20U);
    }
  }
}

TEST(Engine, LogprobsAreThoseOfTheSoftmax) {
  TestEngine engine(engine_options(), fake());
  const auto prompt = make_prompt(6, 12);
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request(prompt, 1));
  requests.back().sampling.n_logprobs = 64;
  const Collected found = engine.generate(std::move(requests))[0];
  ASSERT_EQ(found.outputs[0].best.size(), 64U);
  double sum = 0.0;
  for (const auto& best : found.outputs[0].best) {
    sum += std::exp(best.logprob);
  }
  EXPECT_NEAR(sum, 1.0, 1e-4);
  EXPECT_EQ(found.outputs[0].best[0].token, found.tokens[0]);
  EXPECT_EQ(found.outputs[0].best[0].logprob, *found.outputs[0].logprob);
}

// Allows the tokens of a list one after the other, then is finished.
class ListConstraint final : public grammar::TokenConstraint {
 public:
  ListConstraint(std::vector<std::vector<TokenId>> steps, bool tell_forced)
      : steps_(std::move(steps)), tell_forced_(tell_forced) {}

  bool fill_mask(std::span<std::uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), 0U);
    for (const TokenId token : steps_[at_]) {
      mask[static_cast<std::size_t>(token) / 32] |= 1U << (static_cast<unsigned>(token) % 32U);
    }
    return true;
  }

  bool accept(TokenId token) override {
    const auto& allowed = steps_[at_];
    if (std::find(allowed.begin(), allowed.end(), token) == allowed.end()) {
      return false;
    }
    ++at_;
    return true;
  }

  void rollback(int n_tokens) override { at_ -= static_cast<std::size_t>(n_tokens); }

  std::vector<TokenId> forced_tokens(int max) const override {
    std::vector<TokenId> forced;
    for (std::size_t i = at_; tell_forced_ && i < steps_.size() && steps_[i].size() == 1 &&
                              forced.size() < static_cast<std::size_t>(max);
         ++i) {
      forced.push_back(steps_[i][0]);
    }
    return forced;
  }

  bool is_finished() const override { return at_ == steps_.size(); }

  std::unique_ptr<grammar::TokenConstraint> clone() const override {
    return std::make_unique<ListConstraint>(*this);
  }

 private:
  std::vector<std::vector<TokenId>> steps_;
  bool tell_forced_;
  std::size_t at_ = 0;
};

TEST(Engine, ConstraintHoldsInsideDraftBlocksAndForcedTextComesInOneStep) {
  const std::vector<std::vector<TokenId>> steps{{1, 2}, {9}, {8}, {7}, {6}, {3, 4}, {10, 11}};
  std::vector<TokenId> expected;
  std::int64_t n_steps[2];
  for (const int tell_forced : {0, 1}) {
    for (const int max_drafts : {0, 4}) {
      EngineOptions options = engine_options();
      options.max_drafts = max_drafts;
      TestEngine engine(options, fake(), 2);
      std::vector<GenerationRequest> requests;
      requests.push_back(make_request(make_prompt(7, 10), 50));
      requests.back().constraint = std::make_unique<ListConstraint>(steps, tell_forced == 1);
      const Collected found = engine.generate(std::move(requests))[0];
      ASSERT_EQ(found.tokens.size(), steps.size());
      EXPECT_EQ(found.finish->reason, FinishReason::kStop);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_NE(std::find(steps[i].begin(), steps[i].end(), found.tokens[i]), steps[i].end());
      }
      if (expected.empty()) {
        expected = found.tokens;
      }
      EXPECT_EQ(found.tokens, expected);
      if (max_drafts == 0) {
        n_steps[tell_forced] = engine->stats().steps_total;
      }
    }
  }
  EXPECT_EQ(n_steps[0], 7);
  EXPECT_EQ(n_steps[1], 3) << "first token, four forced and the next, last";
}

TEST(Engine, RequestsWithoutSeedDifferFromEachOther) {
  TestEngine engine(engine_options(), fake());
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back(make_request(make_prompt(8, 10), 20));
    requests.back().sampling.temperature = 1.5F;
  }
  const auto found = engine.generate(std::move(requests));
  EXPECT_NE(found[0].tokens, found[1].tokens);
  EXPECT_NE(found[2].tokens, found[3].tokens);
}

}  // namespace
}  // namespace tandem::runtime
