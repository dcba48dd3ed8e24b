// A warm prefix gives the same tokens as a cold one and says truthfully what it saved.
#include <gtest/gtest.h>

#include "tests/support/engine_fixture.h"

namespace tandem::runtime {
namespace {

using testing::Collected;
using testing::FakeModelOptions;
using testing::greedy_tokens;
using testing::make_prompt;
using testing::make_request;
using testing::TestEngine;

FakeModelOptions fake() {
  FakeModelOptions options;
  options.sizes = testing::fake_sizes();
  return options;
}

EngineOptions with_prefix_cache() {
  EngineOptions options;
  options.reserve_new_tokens = 16;
  options.n_snapshots = 8;
  options.snapshot_interval = 64;
  options.max_drafts = 3;
  return options;
}

Collected ask(TestEngine& engine, const std::vector<TokenId>& prompt, std::int64_t n = 40) {
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request(prompt, n));
  Collected found = engine.generate(std::move(requests))[0];
  EXPECT_EQ(found.tokens, greedy_tokens(prompt, static_cast<std::size_t>(n)));
  return found;
}

TEST(PrefixCache, RegenerateTurnsAndBranchesAreWarmAndTheSame) {
  TestEngine engine(with_prefix_cache(), fake(), 2);
  std::vector<TokenId> chat = make_prompt(1, 150);
  const Collected cold = ask(engine, chat);
  EXPECT_EQ(cold.finish->usage.cached_tokens, 0);
  EXPECT_EQ(ask(engine, chat).finish->usage.cached_tokens, 144) << "regenerate";

  const std::vector<TokenId> asked = chat;
  chat.insert(chat.end(), cold.tokens.begin(), cold.tokens.end());
  const auto more = make_prompt(2, 30);
  chat.insert(chat.end(), more.begin(), more.end());
  EXPECT_EQ(ask(engine, chat).finish->usage.cached_tokens, 176)
      << "150 + 39 computed tokens, last border of the answer";

  std::vector<TokenId> branch(asked.begin(), asked.begin() + 100);
  branch.insert(branch.end(), more.begin(), more.end());
  EXPECT_EQ(ask(engine, branch).finish->usage.cached_tokens, 64) << "the interval snapshot";
  EXPECT_EQ(ask(engine, branch).finish->usage.cached_tokens, 128);
  std::vector<TokenId> other(asked.begin(), asked.begin() + 100);
  other.insert(other.end(), 20, 7);
  EXPECT_EQ(ask(engine, other).finish->usage.cached_tokens, 96) << "where branches have parted";
  EXPECT_EQ(engine->stats().cached_tokens_total, 144 + 176 + 64 + 128 + 96);
  EXPECT_TRUE(engine.stop().ok());
}

TEST(PrefixCache, SharedPagesSurviveNeighboursAndPressure) {
  FakeModelOptions model = fake();
  model.sizes.n_pages = 40;
  TestEngine engine(with_prefix_cache(), model, 2);
  for (std::uint64_t round = 0; round < 6; ++round) {
    std::vector<GenerationRequest> requests;
    std::vector<std::vector<TokenId>> prompts;
    for (std::uint64_t i = 0; i < 6; ++i) {
      std::vector<TokenId> prompt = make_prompt(9, 70);
      const auto tail = make_prompt(10 * round + i, 10 + 7 * i);
      prompt.insert(prompt.end(), tail.begin(), tail.end());
      prompts.push_back(prompt);
      requests.push_back(make_request(prompt, 30));
    }
    const auto found = engine.generate(std::move(requests));
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, greedy_tokens(prompts[i], 30));
      if (round > 1) {
        EXPECT_GE(found[i].finish->usage.cached_tokens, 64);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::runtime
