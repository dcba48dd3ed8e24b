#include "engine/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem::scheduler {
namespace {

SchedulerConfig small_config() {
  SchedulerConfig config;
  config.n_slots = 4;
  config.n_pages = 64;
  config.page_tokens = 16;
  config.max_context_tokens = 512;
  config.max_step_tokens = 64;
  config.max_logit_rows = 16;
  config.max_waiting = 8;
  config.prefill_tokens = 64;
  config.prefill_tokens_busy = 32;
  config.reserve_new_tokens = 16;
  return config;
}

SequenceSpec spec(SequenceId id, std::size_t n_prompt, std::int64_t max_new = 8) {
  SequenceSpec spec;
  spec.id = id;
  spec.prompt.resize(n_prompt);
  std::iota(spec.prompt.begin(), spec.prompt.end(), static_cast<TokenId>(100 * id));
  spec.max_new_tokens = max_new;
  return spec;
}

// Runs one step in which every row with logits gives token 7.
StepPlan run_step(Scheduler& scheduler, TimeUs now = 0, TimeUs step_us = 1000) {
  StepPlan plan = scheduler.plan(now);
  std::vector<SegmentResult> results(plan.segments.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (plan.segments[i].n_logit_rows > 0) {
      results[i].tokens = {7};
    }
  }
  scheduler.commit(plan, results, step_us, now + step_us);
  return plan;
}

TEST(Scheduler, ReadsAPromptInChunksCutAtPageBordersThenDecodes) {
  Scheduler scheduler(small_config());
  ASSERT_TRUE(scheduler.submit(spec(1, 70), 0).ok());
  const StepPlan first = run_step(scheduler);
  ASSERT_EQ(first.segments.size(), 1U);
  EXPECT_EQ(first.segments[0].tokens.size(), 64U);
  EXPECT_EQ(first.segments[0].n_logit_rows, 0);
  ASSERT_EQ(first.assignments.size(), 1U);
  EXPECT_EQ(first.assignments[0].pages.size(), 5U) << "70 + 8 tokens in pages of 16";
  const StepPlan second = run_step(scheduler);
  EXPECT_EQ(second.segments[0].first_position, 64);
  EXPECT_EQ(second.segments[0].n_logit_rows, 1);
  EXPECT_TRUE(second.assignments.empty());
  const StepPlan third = run_step(scheduler);
  EXPECT_EQ(third.segments[0].first_position, 70);
  EXPECT_EQ(third.segments[0].tokens, std::vector<TokenId>{7});
}

TEST(Scheduler, RunningStreamsGoFirstAndPromptsShareTheRest) {
  Scheduler scheduler(small_config());
  ASSERT_TRUE(scheduler.submit(spec(1, 3, 100), 0).ok());
  run_step(scheduler);
  ASSERT_TRUE(scheduler.submit(spec(2, 200), 0).ok());
  ASSERT_TRUE(scheduler.submit(spec(3, 5), 0).ok());
  const StepPlan plan = scheduler.plan(0);
  ASSERT_EQ(plan.segments.size(), 3U);
  EXPECT_EQ(plan.segments[0].sequence, 1U);
  EXPECT_EQ(plan.segments[1].sequence, 2U);
  EXPECT_EQ(plan.segments[1].tokens.size(), 16U) << "27 of 32 rows, cut at a page border";
  EXPECT_EQ(plan.segments[2].tokens.size(), 5U) << "a short prompt does not wait for a long one";
}

TEST(Scheduler, CancelFreesPagesAndSlotForTheNextPlan) {
  Scheduler scheduler(small_config());
  for (SequenceId id = 1; id <= 5; ++id) {
    ASSERT_TRUE(scheduler.submit(spec(id, 10), 0).ok());
  }
  run_step(scheduler);
  EXPECT_EQ(scheduler.counters().running, 4);
  EXPECT_TRUE(scheduler.remove(2));
  EXPECT_FALSE(scheduler.remove(2));
  EXPECT_FALSE(scheduler.remove(99));
  const StepPlan plan = run_step(scheduler);
  ASSERT_EQ(plan.cleared_slots, std::vector<std::int32_t>{1});
  EXPECT_EQ(plan.segments.back().sequence, 5U);
  EXPECT_EQ(plan.segments.back().slot, 1);
  for (const SequenceId id : {1, 3, 4, 5}) {
    EXPECT_TRUE(scheduler.remove(id));
  }
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.counters().pages_used, 0);
  EXPECT_TRUE(scheduler.plan(0).empty());
}

TEST(Scheduler, SlotsFollowTheSequenceNotTheRow) {
  Scheduler scheduler(small_config());
  for (SequenceId id = 0; id < 3; ++id) {
    ASSERT_TRUE(scheduler.submit(spec(id, 4, 50), 0).ok());
  }
  run_step(scheduler);
  scheduler.remove(0);
  ASSERT_TRUE(scheduler.submit(spec(3, 4, 50), 0).ok());
  const StepPlan plan = run_step(scheduler);
  ASSERT_EQ(plan.segments.size(), 3U);
  EXPECT_EQ(plan.segments[0].slot, 1);
  EXPECT_EQ(plan.segments[1].slot, 2);
  EXPECT_EQ(plan.segments[2].slot, 0);
}

TEST(Scheduler, PreemptionLosesNoToken) {
  SchedulerConfig config = small_config();
  config.n_pages = 8;
  config.reserve_new_tokens = 1;
  Scheduler scheduler(config);
  ASSERT_TRUE(scheduler.submit(spec(1, 47, 60), 0).ok());
  ASSERT_TRUE(scheduler.submit(spec(2, 47, 60), 0).ok());
  std::int64_t generated = 0;
  for (int i = 0; i < 40 && scheduler.counters().preemptions == 0; ++i) {
    const StepPlan plan = run_step(scheduler);
    for (const PlanSegment& segment : plan.segments) {
      generated += segment.sequence == 2 && segment.n_logit_rows > 0 ? 1 : 0;
    }
  }
  ASSERT_EQ(scheduler.counters().preemptions, 1);
  EXPECT_EQ(scheduler.counters().waiting, 1);
  scheduler.remove(1);
  const StepPlan plan = scheduler.plan(0);
  ASSERT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.segments[0].sequence, 2U);
  EXPECT_EQ(plan.segments[0].first_position, 0);
  EXPECT_EQ(static_cast<std::int64_t>(plan.segments[0].tokens.size()),
            std::min<std::int64_t>(64, 47 + generated));
}

TEST(Scheduler, DraftsAreVerifiedAndRejectedOnesRolledBack) {
  Scheduler scheduler(small_config());
  ASSERT_TRUE(scheduler.submit(spec(1, 4, 6), 0).ok());
  EXPECT_EQ(scheduler.draft_room(1, 5), 0) << "no drafts on rows still in prefill";
  run_step(scheduler);
  EXPECT_EQ(scheduler.draft_room(1, 5), 4) << "5 more tokens may come, 4 drafts give 5";
  scheduler.set_drafts(1, {11, 12, 13});
  const StepPlan plan = scheduler.plan(0);
  EXPECT_EQ(plan.segments[0].tokens, (std::vector<TokenId>{7, 11, 12, 13}));
  EXPECT_EQ(plan.segments[0].n_drafts, 3);
  EXPECT_EQ(plan.segments[0].n_logit_rows, 4);
  const std::vector<SegmentResult> accepted_one{{{11, 9}, false}};
  scheduler.commit(plan, accepted_one, 1000, 1000);
  const StepPlan next = scheduler.plan(0);
  EXPECT_EQ(next.segments[0].first_position, 6) << "4 prompt rows, token 7 and draft 11";
  EXPECT_EQ(next.segments[0].tokens, std::vector<TokenId>{9});
}

TEST(Scheduler, HigherPriorityAndLessServedTenantsAreAdmittedFirst) {
  SchedulerConfig config = small_config();
  config.n_slots = 1;
  Scheduler scheduler(config);
  const auto submit = [&](SequenceId id, int priority, const char* tenant) {
    SequenceSpec s = spec(id, 8, 1);
    s.priority = priority;
    s.tenant = tenant;
    ASSERT_TRUE(scheduler.submit(std::move(s), 0).ok());
  };
  submit(1, 0, "a");
  submit(2, 0, "a");
  submit(3, 0, "b");
  submit(4, 1, "a");
  std::vector<SequenceId> order;
  while (!scheduler.idle()) {
    const StepPlan plan = run_step(scheduler);
    order.push_back(plan.segments[0].sequence);
    scheduler.remove(order.back());
  }
  EXPECT_EQ(order, (std::vector<SequenceId>{4, 3, 1, 2}));
}

TEST(Scheduler, WaitingLongEnoughBeatsPriority) {
  SchedulerConfig config = small_config();
  config.n_slots = 1;
  config.aging_us = 100;
  Scheduler scheduler(config);
  ASSERT_TRUE(scheduler.submit(spec(1, 8), 0).ok());
  SequenceSpec urgent = spec(2, 8);
  urgent.priority = 3;
  ASSERT_TRUE(scheduler.submit(std::move(urgent), 400).ok());
  EXPECT_EQ(scheduler.plan(400).segments[0].sequence, 1U);
}

TEST(Scheduler, StreamsKeepTheirShareWhileALongPromptIsRead) {
  SchedulerConfig config = small_config();
  config.n_pages = 2'000;
  config.max_context_tokens = 20'000;
  config.max_prefill_pause_us = 1'000'000'000;
  Scheduler scheduler(config);
  ASSERT_TRUE(scheduler.submit(spec(1, 4, 10'000), 0).ok());
  TimeUs now = 0;
  const auto step = [&] {
    const StepPlan plan = scheduler.plan(now);
    const TimeUs step_us = plan.segments.size() > 1 ? 9'000 : 1'000;
    std::vector<SegmentResult> results(plan.segments.size());
    results[0].tokens = {7};
    now += step_us;
    scheduler.commit(plan, results, step_us, now);
    return plan.segments.size();
  };
  for (int i = 0; i < 10; ++i) {
    step();
  }
  ASSERT_TRUE(scheduler.submit(spec(2, 9'000, 1), 0).ok());
  const TimeUs start = now;
  int n_steps = 0;
  int n_mixed = 0;
  for (; n_mixed < 100; ++n_steps) {
    n_mixed += step() > 1 ? 1 : 0;
  }
  const double rate = n_steps / (static_cast<double>(now - start) / 1'000.0);
  EXPECT_GE(rate, 0.59);
  EXPECT_LE(rate, 0.65) << "the prompt must get what the streams do not need";
}

TEST(Scheduler, RefusesWhatCannotRun) {
  Scheduler scheduler(small_config());
  EXPECT_EQ(scheduler.submit(spec(1, 0), 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler.submit(spec(1, 512), 0).status().code(), StatusCode::kInvalidArgument);
  const auto most = scheduler.submit(spec(1, 500, -1), 0);
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(*most, 12);
  for (SequenceId id = 2; id <= 8; ++id) {
    ASSERT_TRUE(scheduler.submit(spec(id, 1), 0).ok());
  }
  EXPECT_EQ(scheduler.submit(spec(9, 1), 0).status().code(), StatusCode::kResourceExhausted);
}

TEST(SchedulerConfig, NamesTheFieldThatMakesNoSense) {
  SchedulerConfig config = small_config();
  config.max_logit_rows = 3;
  EXPECT_NE(config.validate().message().find("max_logit_rows is 3"), std::string::npos);
  config = small_config();
  config.decode_share = 1.0;
  EXPECT_FALSE(config.validate().ok());
}

}  // namespace
}  // namespace tandem::scheduler
