// Cancel, refuse, fail, stop: every stream ends once, and stop() always returns.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/engine_fixture.h"

namespace tandem::runtime {
namespace {

using testing::Collected;
using testing::Collector;
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

EngineOptions engine_options() {
  EngineOptions options;
  options.reserve_new_tokens = 16;
  options.host = "head";
  return options;
}

FakeModelOptions slow_fake() {
  FakeModelOptions options = fake();
  options.before_forward = [](const v4::StepInput&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return ok_status();
  };
  return options;
}

TEST(EngineFaults, CancelEndsWithinAStepAndFreesEverything) {
  TestEngine engine(engine_options(), slow_fake(), 2);
  Collector collector;
  const auto running = engine->submit(make_request(make_prompt(1, 10), 1'000), collector.sink(0));
  const auto other = engine->submit(make_request(make_prompt(2, 10), 20), collector.sink(1));
  ASSERT_TRUE(running.ok() && other.ok());
  collector.wait_for_tokens(0, 3);
  engine->cancel(*running);
  engine->cancel(*running);
  engine->cancel(999);
  const Collected cancelled = collector.wait(0);
  EXPECT_EQ(cancelled.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.finish->usage.completion_tokens,
            static_cast<std::int64_t>(cancelled.tokens.size()));
  EXPECT_LT(cancelled.tokens.size(), 500U);
  EXPECT_EQ(collector.wait(1).tokens, greedy_tokens(make_prompt(2, 10), 20));
  const auto last = engine.generate([] {
    std::vector<GenerationRequest> requests;
    requests.push_back(make_request(make_prompt(3, 100), 5));
    return requests;
  }());
  EXPECT_EQ(last[0].tokens.size(), 5U);
  EXPECT_EQ(engine->stats().kv_pages_used, 0);
  EXPECT_EQ(engine->stats().finished_cancelled_total, 1);
}

TEST(EngineFaults, BadRequestsAreRefusedWithTheReason) {
  EngineOptions options = engine_options();
  options.max_waiting = 2;
  FakeModelOptions model = slow_fake();
  model.sizes.n_slots = 1;
  Collector collector;  // outlives the engine, whose end still sends events
  TestEngine engine(options, model);
  const auto submit = [&](GenerationRequest request) {
    return engine->submit(std::move(request), collector.sink(0)).status();
  };
  EXPECT_EQ(submit(make_request({}, 5)).code(), StatusCode::kInvalidArgument);
  EXPECT_NE(submit(make_request({64}, 5)).message().find("token 64, expected 0 to 63"),
            std::string::npos);
  EXPECT_NE(submit(make_request({-1}, 5)).message().find("token -1"), std::string::npos);
  EXPECT_NE(submit(make_request(make_prompt(1, 1'024), 5)).message().find("up to 1023"),
            std::string::npos);
  EXPECT_EQ(submit(make_request({1}, 0)).code(), StatusCode::kInvalidArgument);
  GenerationRequest bad = make_request({1}, 1);
  bad.sampling.min_p = 2.0F;
  EXPECT_NE(submit(std::move(bad)).message().find("min_p"), std::string::npos);
  int accepted = 0;
  Status last;
  for (int i = 1; i < 20 && last.ok(); ++i) {
    last = engine->submit(make_request({1, 2}, 100), collector.sink(i)).status();
    accepted += last.ok() ? 1 : 0;
  }
  EXPECT_EQ(last.code(), StatusCode::kResourceExhausted);
  EXPECT_GE(accepted, 2);
  EXPECT_LE(accepted, 4);
}

TEST(EngineFaults, ContextIsTheLastLimit) {
  TestEngine engine(engine_options(), fake());
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request(make_prompt(1, 1'000), -1));
  const auto found = engine.generate(std::move(requests));
  EXPECT_EQ(found[0].tokens.size(), 24U);
  EXPECT_EQ(found[0].finish->reason, FinishReason::kLength);
}

TEST(EngineFaults, ABadLogitRowFailsOneRequestNotTheServer) {
  FakeModelOptions model = fake();
  model.edit_logits = [](std::size_t, TokenId last, std::span<float> row) {
    if (last == 62) {
      row[7] = std::numeric_limits<float>::quiet_NaN();
    }
  };
  TestEngine engine(engine_options(), model);
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request({1, 2, 3}, 4));
  requests.push_back(make_request({1, 2, 62}, 4));
  requests.push_back(make_request({1, 2, 4}, 4));
  requests[1].request_id = "req-bad";
  const auto found = engine.generate(std::move(requests));
  EXPECT_EQ(found[1].finish->reason, FinishReason::kError);
  EXPECT_NE(found[1].finish->error.message().find("non_finite_logits"), std::string::npos);
  EXPECT_NE(found[1].finish->error.message().find("req-bad"), std::string::npos);
  EXPECT_EQ(found[0].tokens, greedy_tokens({1, 2, 3}, 4));
  EXPECT_EQ(found[2].tokens, greedy_tokens({1, 2, 4}, 4));
  EXPECT_TRUE(engine->health().ok);
}

TEST(EngineFaults, AModelFaultPoisonsTheEngine) {
  FakeModelOptions model = fake();
  std::atomic<int> steps{0};
  model.before_forward = [&steps](const v4::StepInput&) -> Status {
    return ++steps > 5 ? unavailable("device lost") : ok_status();
  };
  std::atomic<int> faults{0};
  EngineOptions options = engine_options();
  options.on_fault = [&faults](const Status&) { ++faults; };
  TestEngine engine(options, model);
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request({1}, 100));
  requests.push_back(make_request({2}, 100));
  for (const Collected& found : engine.generate(std::move(requests))) {
    EXPECT_EQ(found.finish->reason, FinishReason::kError);
    EXPECT_EQ(found.finish->error.message(), "device lost");
    EXPECT_EQ(found.finish->usage.completion_tokens,
              static_cast<std::int64_t>(found.tokens.size()));
  }
  Collector collector;
  EXPECT_EQ(engine->submit(make_request({1}, 1), collector.sink(0)).status().code(),
            StatusCode::kUnavailable);
  EXPECT_FALSE(engine->health().ok);
  EXPECT_EQ(engine->health().verdict, "device lost");
  EXPECT_EQ(engine.stop().message(), "device lost");
  EXPECT_EQ(faults, 1);
}

TEST(EngineFaults, AStuckRankTurnsHealthRedEndsStreamsAndStopReturns) {
  std::atomic<bool> release{false};
  FakeModelOptions model = fake();
  model.before_forward = [&release](const v4::StepInput&) {
    while (!release) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ok_status();
  };
  EngineOptions options = engine_options();
  options.stall_us = 300'000;
  options.stop_us = 100'000;
  TestEngine engine(options, model);
  EXPECT_TRUE(engine->health().ok);
  std::vector<GenerationRequest> requests;
  requests.push_back(make_request({1}, 100));
  const auto found = engine.generate(std::move(requests));
  EXPECT_EQ(found[0].finish->reason, FinishReason::kError);
  EXPECT_NE(found[0].finish->error.message().find("lost or stuck"), std::string::npos);
  const EngineHealth health = engine->health();
  EXPECT_FALSE(health.ok);
  EXPECT_FALSE(health.ranks[0].alive);
  EXPECT_FALSE(engine->stop().ok());
  release = true;
  // The engine thread must be gone before the model is: it ends by itself now.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

TEST(EngineFaults, StopEndsRunningAndWaitingSequences) {
  FakeModelOptions model = slow_fake();
  model.sizes.n_slots = 1;
  TestEngine engine(engine_options(), model, 2);
  Collector collector;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(engine->submit(make_request({1, 2}, 900), collector.sink(i)).ok());
  }
  collector.wait_for_tokens(0, 2);
  EXPECT_TRUE(engine.stop().ok());
  EXPECT_TRUE(engine.worker_status(1).ok());
  for (int i = 0; i < 3; ++i) {
    const Collected found = collector.wait(i);
    EXPECT_EQ(found.finish->reason, FinishReason::kError);
    EXPECT_EQ(found.finish->error.code(), StatusCode::kUnavailable);
  }
  EXPECT_EQ(engine->submit(make_request({1}, 1), collector.sink(9)).status().code(),
            StatusCode::kUnavailable);
}

TEST(EngineFaults, IdleRanksAnswerHeartbeats) {
  EngineOptions options = engine_options();
  options.heartbeat_us = 20'000;
  TestEngine engine(options, fake(), 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const EngineHealth health = engine->health();
  EXPECT_TRUE(health.ok);
  ASSERT_EQ(health.ranks.size(), 2U);
  EXPECT_EQ(health.ranks[0].host, "head");
  EXPECT_EQ(health.ranks[1].host, "worker");
  EXPECT_TRUE(health.ranks[1].alive);
  EXPECT_LT(health.ranks[1].last_step_age_us, 250'000);
}

TEST(EngineFaults, RanksWithOtherSizesDoNotStart) {
  auto job = std::make_shared<testing::ThreadJob>(2);
  testing::ThreadCommunicator head(job, 0);
  testing::ThreadCommunicator worker(job, 1);
  FakeModelOptions other = fake();
  other.sizes.n_pages = 99;
  testing::FakeModel head_model(fake(), head);
  testing::FakeModel worker_model(other, worker);
  Status worker_status;
  std::thread thread([&] { worker_status = run_worker({0, "spark-2"}, worker_model, worker); });
  const auto engine = make_engine(engine_options(), head_model, head);
  thread.join();
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.status().message().find("rank 1 (spark-2) has n_pages = 99"), std::string::npos)
      << engine.status().message();
  EXPECT_FALSE(worker_status.ok());
}

}  // namespace
}  // namespace tandem::runtime
