// ShadowRank: an independent model of what a rank's memory holds. It executes plans on rows that
// are hashes of all tokens so far and knows nothing of the scheduler: a plan that reads a row which
// is not what the sequence computed, writes a row that another sequence needs, or breaks a limit is
// reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/scheduler/scheduler.h"

namespace tandem::simulation {

class ShadowRank {
 public:
  ShadowRank(const scheduler::SchedulerConfig& config, std::int32_t draft_slack);

  static std::uint64_t extend(std::uint64_t hash, TokenId token);
  static std::uint64_t empty_hash() { return 1; }
  // The token after a sequence with this hash.
  static TokenId next_token(std::uint64_t hash);
  static constexpr TokenId kVocab = 50;

  // Executes the plan; empty if it was valid, else what is wrong. out: hash after each row.
  std::string run(const scheduler::StepPlan& plan, std::vector<std::uint64_t>& out);

  // Every row below n_tokens of the slot is what these tokens give.
  std::string verify_rows(std::int32_t slot, const std::vector<TokenId>& tokens,
                          std::int64_t n_tokens) const;

 private:
  struct Entry {
    Position position = -1;
    std::uint64_t hash = 0;
  };

  struct Slot {
    std::vector<PageId> pages;
    std::vector<Entry> ring;
    Position n_computed = 0;
    bool cleared = true;
    SequenceId owner = 0;
  };

  std::string run_memory(const scheduler::StepPlan& plan);
  std::string restore(const scheduler::SnapshotTransfer& transfer);
  std::string save(const scheduler::SnapshotTransfer& transfer);
  std::string run_segment(const scheduler::PlanSegment& segment, std::vector<std::uint64_t>& out);
  std::string check_limits(const scheduler::StepPlan& plan) const;
  std::uint64_t* row(const Slot& slot, Position p);
  const std::uint64_t* row(const Slot& slot, Position p) const;
  Slot& at(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  Entry& ring(Slot& slot, Position p);

  scheduler::SchedulerConfig config_;
  std::int32_t draft_slack_;
  std::vector<std::uint64_t> rows_;
  std::vector<Slot> slots_;
  std::vector<Entry> snapshots_;
};

}  // namespace tandem::simulation
