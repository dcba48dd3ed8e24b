// Random requests, cancellations, drafts and page shortage against the scheduler, for as many steps
// as asked. Every plan runs on a ShadowRank; every sequence must give exactly its own tokens.
// A failure prints the seed: scheduler_simulation_test --steps=N --seed=S repeats it.
#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <string_view>

#include "engine/scheduler/scheduler.h"
#include "foundation/base/random.h"
#include "tests/simulation/shadow_rank.h"

namespace tandem::simulation {
namespace {

using scheduler::PlanSegment;
using scheduler::Scheduler;
using scheduler::SchedulerConfig;
using scheduler::SegmentResult;
using scheduler::SequenceSpec;
using scheduler::StepPlan;

std::int64_t g_steps = 100'000;
std::uint64_t g_first_seed = 1;
constexpr std::int64_t kStepsPerSeed = 5'000;
constexpr std::int32_t kDraftSlack = 4;

SchedulerConfig random_config(Random& random) {
  const auto between = [&random](std::uint64_t low, std::uint64_t high) {
    return low + random.below(high - low + 1);
  };
  SchedulerConfig config;
  config.n_slots = static_cast<std::int32_t>(between(1, 8));
  config.page_tokens = 8;
  config.n_pages = static_cast<std::int64_t>(between(16, 80));
  config.max_context_tokens = static_cast<std::int64_t>(between(40, 300));
  config.max_step_tokens = static_cast<std::int32_t>(between(8, 80));
  config.max_logit_rows = static_cast<std::int32_t>(between(8, 40));
  config.max_waiting = 20;
  config.prefill_tokens = static_cast<std::int32_t>(between(1, 100));
  config.prefill_tokens_busy = static_cast<std::int32_t>(between(1, 40));
  config.max_partial_prefills = static_cast<std::int32_t>(between(1, 4));
  config.reserve_new_tokens = static_cast<std::int64_t>(between(1, 40));
  config.decode_share = random.below(2) == 0 ? 0.0 : 0.6;
  config.max_prefill_pause_us = 200'000;
  config.aging_us = 3'000'000;
  config.n_snapshots = static_cast<std::int32_t>(random.below(3) == 0 ? 0 : between(1, 12));
  config.snapshot_interval = static_cast<std::int64_t>(between(8, 64));
  return config;
}

struct Live {
  SequenceSpec spec;
  std::vector<TokenId> generated;
  std::uint64_t hash = 0;  // of prompt and generated
  std::int64_t max_new = 0;
  std::int32_t slot = -1;
  bool streaming = false;  // got a token since it was last admitted
  TimeUs submitted_us = 0;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed)
      : random_(seed),
        config_(random_config(random_)),
        scheduler_(config_),
        twin_(config_),
        rank_(config_, kDraftSlack) {}

  // Empty or what went wrong.
  std::string run(std::int64_t n_steps) {
    for (std::int64_t i = 0; i < n_steps && error_.empty(); ++i) {
      arrive();
      leave();
      step();
    }
    // Everything that is left must end: no sequence waits for ever.
    for (int i = 0; i < 20'000 && error_.empty() && !live_.empty(); ++i) {
      step();
    }
    if (error_.empty()) {
      check_end();
    }
    return error_;
  }

  std::int64_t n_preemptions() const { return scheduler_.counters().preemptions; }
  std::int64_t n_restores() const { return n_restores_; }
  std::int64_t n_finished() const { return n_finished_; }

 private:
  void fail(std::string error) {
    if (error_.empty()) {
      error_ = std::move(error);
    }
  }

  std::vector<TokenId> random_prompt() {
    // Families share prefixes; some prompts continue an earlier sequence, as a next turn does.
    std::vector<TokenId> prompt;
    if (!past_.empty() && random_.below(3) == 0) {
      prompt = past_[random_.below(past_.size())];
    } else {
      Random family(random_.below(4));
      prompt.resize(random_.below(120));
      for (TokenId& token : prompt) {
        token = static_cast<TokenId>(family.below(ShadowRank::kVocab));
      }
    }
    for (std::uint64_t n = random_.below(20); n > 0; --n) {
      prompt.push_back(static_cast<TokenId>(random_.below(ShadowRank::kVocab)));
    }
    return prompt;
  }

  void arrive() {
    if (random_.below(100) >= 12) {
      return;
    }
    SequenceSpec spec;
    spec.id = next_id_++;
    spec.prompt = random_prompt();
    spec.max_new_tokens = static_cast<std::int64_t>(random_.below(60)) - 1;
    spec.priority = static_cast<int>(random_.below(3));
    spec.tenant = std::string(1, static_cast<char>('a' + random_.below(3)));
    const auto accepted = scheduler_.submit(spec, now_);
    const auto twin = twin_.submit(spec, now_);
    if (accepted.ok() != twin.ok()) {
      fail("two schedulers with the same past disagree");
    }
    if (!accepted.ok()) {
      return;
    }
    Live live;
    live.hash = ShadowRank::empty_hash();
    for (const TokenId token : spec.prompt) {
      live.hash = ShadowRank::extend(live.hash, token);
    }
    live.max_new = *accepted;
    live.submitted_us = now_;
    const SequenceId id = spec.id;
    live.spec = std::move(spec);
    live_.emplace(id, std::move(live));
  }

  void leave() {
    if (live_.empty() || random_.below(100) >= 3) {
      return;
    }
    const auto victim =
        std::next(live_.begin(), static_cast<std::ptrdiff_t>(random_.below(live_.size())));
    if (!scheduler_.remove(victim->first) || !twin_.remove(victim->first)) {
      fail("a live sequence is unknown to the scheduler");
    }
    live_.erase(victim);
  }

  void step() {
    const std::int64_t preemptions = scheduler_.counters().preemptions;
    const StepPlan plan = scheduler_.plan(now_);
    if (!(plan == twin_.plan(now_))) {
      fail("two schedulers with the same past give different plans");
    }
    if (plan.empty()) {
      if (!live_.empty()) {
        const auto c = scheduler_.counters();
        fail(fmt::format(
            "{} sequences but no plan: {} run, {} wait, {} of {} pages used, {} cached",
            live_.size(), c.running, c.waiting, c.pages_used, config_.n_pages, c.pages_cached));
      }
      return;
    }
    n_restores_ += static_cast<std::int64_t>(plan.restores.size());
    std::vector<std::uint64_t> hashes;
    if (std::string error = rank_.run(plan, hashes); !error.empty()) {
      fail(std::move(error));
      return;
    }
    check_streams(plan, scheduler_.counters().preemptions - preemptions);
    std::vector<SegmentResult> results;
    std::size_t end = 0;
    bool prefill = false;
    for (const PlanSegment& segment : plan.segments) {
      end += segment.tokens.size();
      results.push_back(sample(segment, std::span(hashes).first(end)));
      prefill = prefill || segment.tokens.size() > 5;
    }
    const TimeUs step_us =
        1'000 + static_cast<TimeUs>(random_.below(500)) + (prefill ? 20 * plan.n_rows() : 0);
    now_ += step_us;
    scheduler_.commit(plan, results, step_us, now_);
    twin_.commit(plan, results, step_us, now_);
    after_commit(plan, results);
  }

  // A stream gets a row in every step unless it was pre-empted for want of pages.
  void check_streams(const StepPlan& plan, std::int64_t n_preempted) {
    std::int64_t n_missing = 0;
    for (auto& entry : live_) {
      const bool planned =
          std::any_of(plan.segments.begin(), plan.segments.end(),
                      [&](const PlanSegment& segment) { return segment.sequence == entry.first; });
      n_missing += entry.second.streaming && !planned ? 1 : 0;
      entry.second.streaming = entry.second.streaming && planned;
    }
    if (n_missing > n_preempted) {
      fail(fmt::format("{} streams were left out, {} pre-empted", n_missing, n_preempted));
    }
  }

  SegmentResult sample(const PlanSegment& segment, std::span<const std::uint64_t> hashes) {
    SegmentResult result;
    const auto found = live_.find(segment.sequence);
    if (found == live_.end()) {
      fail(fmt::format("the plan runs sequence {}, which is gone", segment.sequence));
      return result;
    }
    Live& live = found->second;
    live.slot = segment.slot;
    // A sequence that is computed again after pre-emption streams from its next token on.
    live.streaming = segment.n_logit_rows > 0;
    const auto n_logits = static_cast<std::size_t>(segment.n_logit_rows);
    const auto logits = hashes.last(n_logits);
    const auto drafts = std::span(segment.tokens).last(static_cast<std::size_t>(segment.n_drafts));
    for (std::size_t i = 0; i < n_logits && !result.finished; ++i) {
      if (logits[i] != live.hash) {
        fail(fmt::format("sequence {} was computed from other tokens", segment.sequence));
      }
      const TokenId token = ShadowRank::next_token(live.hash);
      live.hash = ShadowRank::extend(live.hash, token);
      live.generated.push_back(token);
      result.tokens.push_back(token);
      result.finished =
          token == 0 || static_cast<std::int64_t>(live.generated.size()) >= live.max_new;
      if (i >= drafts.size() || drafts[i] != token) {
        break;
      }
    }
    return result;
  }

  void after_commit(const StepPlan& plan, const std::vector<SegmentResult>& results) {
    for (std::size_t i = 0; i < results.size() && error_.empty(); ++i) {
      const SequenceId id = plan.segments[i].sequence;
      Live& live = live_.at(id);
      std::vector<TokenId> tokens = live.spec.prompt;
      if (results[i].finished || random_.below(64) == 0) {
        tokens.insert(tokens.end(), live.generated.begin(), live.generated.end());
        const auto n_known = plan.segments[i].n_logit_rows > 0
                                 ? static_cast<std::int64_t>(tokens.size()) - 1
                                 : plan.segments[i].first_position;
        fail(rank_.verify_rows(live.slot, tokens, n_known));
      }
      if (results[i].finished) {
        ++n_finished_;
        past_.resize(std::min<std::size_t>(past_.size(), 15));
        if (tokens.size() < 150) {
          past_.insert(past_.begin(), tokens);
        }
        live_.erase(id);
      } else if (!results[i].tokens.empty() && random_.below(2) == 0) {
        propose(id, live);
      }
    }
  }

  void propose(SequenceId id, const Live& live) {
    std::vector<TokenId> drafts;
    std::uint64_t hash = live.hash;
    const auto room = scheduler_.draft_room(
        id, static_cast<std::int32_t>(random_.below(static_cast<std::uint64_t>(kDraftSlack) + 1)));
    for (std::int32_t i = 0; i < room; ++i) {
      const TokenId token = random_.below(3) > 0 ? ShadowRank::next_token(hash) : 1;
      drafts.push_back(token);
      hash = ShadowRank::extend(hash, token);
    }
    scheduler_.set_drafts(id, drafts);
    twin_.set_drafts(id, drafts);
  }

  void check_end() {
    if (!live_.empty()) {
      fail(fmt::format("{} sequences never ended", live_.size()));
    }
    const auto counters = scheduler_.counters();
    if (!scheduler_.idle() || counters.running + counters.waiting != 0) {
      fail("the scheduler is not idle");
    }
    if (counters.pages_used != counters.pages_cached) {
      fail(fmt::format("{} pages are used, {} by prefixes: pages leaked", counters.pages_used,
                       counters.pages_cached));
    }
  }

  Random random_;
  SchedulerConfig config_;
  Scheduler scheduler_;
  Scheduler twin_;
  ShadowRank rank_;
  std::map<SequenceId, Live> live_;
  std::vector<std::vector<TokenId>> past_;
  SequenceId next_id_ = 1;
  TimeUs now_ = 0;
  std::int64_t n_restores_ = 0;
  std::int64_t n_finished_ = 0;
  std::string error_;
};

TEST(SchedulerSimulation, EverySequenceGetsItsOwnTokensAndNothingLeaks) {
  std::int64_t preemptions = 0;
  std::int64_t restores = 0;
  std::int64_t finished = 0;
  const std::int64_t n_seeds = (g_steps + kStepsPerSeed - 1) / kStepsPerSeed;
  for (std::int64_t i = 0; i < n_seeds; ++i) {
    const std::uint64_t seed = g_first_seed + static_cast<std::uint64_t>(i);
    Simulation simulation(seed);
    const std::string error = simulation.run(std::min(g_steps, kStepsPerSeed));
    ASSERT_TRUE(error.empty()) << "seed " << seed << ": " << error;
    preemptions += simulation.n_preemptions();
    restores += simulation.n_restores();
    finished += simulation.n_finished();
  }
  // The run must have met what it is about.
  EXPECT_GT(finished, g_steps / 100);
  EXPECT_GT(preemptions, g_steps / 2'000);
  EXPECT_GT(restores, g_steps / 1'000);
  RecordProperty("finished", std::to_string(finished));
}

template <typename Number>
void read_flag(std::string_view argument, std::string_view name, Number& value) {
  if (argument.substr(0, name.size()) == name) {
    argument.remove_prefix(name.size());
    std::from_chars(argument.data(), argument.data() + argument.size(), value);
  }
}

}  // namespace
}  // namespace tandem::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    tandem::simulation::read_flag(argv[i], "--steps=", tandem::simulation::g_steps);
    tandem::simulation::read_flag(argv[i], "--seed=", tandem::simulation::g_first_seed);
  }
  return RUN_ALL_TESTS();
}
