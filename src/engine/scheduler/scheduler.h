// Scheduler: which sequences run which tokens in the next step. Pure: no tensors, no clock, no
// threads; the same calls give the same plans.
//
// Decode rows go first, prompt chunks share what the step has left. A sequence is admitted when a
// slot is free and pages for its whole input plus a margin of output are; it grows page by page
// after that. If no page is left the last sequence in rank order is pre-empted: it goes back to
// waiting with all its tokens and is computed again later, so nothing is lost.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/scheduler/page_ledger.h"
#include "engine/scheduler/prefix_cache.h"
#include "engine/scheduler/step_pacer.h"
#include "engine/scheduler/step_plan.h"
#include "foundation/base/clock.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::scheduler {

struct SchedulerConfig {
  std::int32_t n_slots = 8;
  std::int64_t n_pages = 0;
  std::int32_t page_tokens = 128;
  std::int64_t max_context_tokens = 0;
  std::int32_t max_step_tokens = 512;
  std::int32_t max_logit_rows = 64;
  std::int64_t max_waiting = 256;
  std::int32_t prefill_tokens = 8192;      // per step while nothing decodes
  std::int32_t prefill_tokens_busy = 512;  // per step next to decoding sequences
  std::int32_t max_partial_prefills = 4;   // prompts that share a step
  std::int64_t reserve_new_tokens = 1024;  // output pages reserved at admission
  double decode_share = 0.6;               // see StepPacer
  TimeUs max_prefill_pause_us = 2'000'000;
  std::int32_t n_snapshots = 0;           // places for prefix snapshots; 0: no prefix cache
  std::int64_t snapshot_interval = 2048;  // tokens between snapshots inside a long prompt
  TimeUs aging_us = 30'000'000;           // waiting this long counts as one level of priority

  // ERRORS: kInvalidArgument names the field.
  Status validate() const;
};

struct SequenceSpec {
  SequenceId id = 0;
  std::vector<TokenId> prompt;
  std::int64_t max_new_tokens = -1;  // -1: up to the context
  int priority = 0;                  // higher goes first
  std::string tenant;
};

// What became of a segment with logit rows; default for one without.
struct SegmentResult {
  std::vector<TokenId> tokens;  // sampled in order: the accepted drafts and one more
  bool finished = false;
};

struct SchedulerCounters {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t preemptions = 0;
  std::int64_t pages_used = 0;    // by sequences and prefixes
  std::int64_t pages_cached = 0;  // of prefixes, whether sequences use them too or not
};

class Scheduler {
 public:
  // REQUIRES: config.validate().
  explicit Scheduler(const SchedulerConfig& config);

  // Returns how many tokens it may generate at most.
  // ERRORS: kInvalidArgument (empty prompt, or no room for one more token in the context or the
  // page pool), kResourceExhausted (max_waiting).
  Result<std::int64_t> submit(SequenceSpec spec, TimeUs now);

  // Cancelled: gone from the next plan on, its pages and slot are free. False: unknown.
  bool remove(SequenceId id);

  bool idle() const { return running_.empty() && waiting_.empty(); }

  // The next step. Every plan must be executed and committed before the next call.
  StepPlan plan(TimeUs now);

  // results: one per segment of the plan. step_us: how long the step took.
  void commit(const StepPlan& plan, std::span<const SegmentResult> results, TimeUs step_us,
              TimeUs now);

  // Drafts to verify in the sequence's next step; cut to what fits. Only for a sequence that got
  // tokens in the last commit.
  void set_drafts(SequenceId id, std::vector<TokenId> drafts);

  // Most drafts that can be of use to the sequence in its next step, given room for `wanted`.
  std::int32_t draft_room(SequenceId id, std::int32_t wanted) const;

  // Tokens of the prompt that the sequence did not have to compute. REQUIRES: it is running.
  std::int64_t cached_tokens(SequenceId id) const;

  // REQUIRES: the sequence is running and has this position.
  TokenId token_at(SequenceId id, Position position) const;

  SchedulerCounters counters() const;

 private:
  struct Sequence {
    SequenceSpec spec;
    std::vector<TokenId> tokens;  // prompt and generated
    std::int64_t max_length = 0;  // of tokens
    std::uint64_t arrival = 0;
    TimeUs submitted_us = 0;
    bool preempted = false;
    bool decoding = false;  // got a token since it was admitted: one row per step from now on
    Position n_computed = 0;
    std::int32_t slot = -1;
    std::vector<PageId> pages;
    std::size_t n_pages_planned = 0;  // of pages, those that a plan has put into the slot's table
    std::vector<TokenId> drafts;
    std::int64_t n_cached = 0;     // prompt tokens found in the prefix cache
    Position shared_position = 0;  // up to here other sequences had the same tokens
    Position last_snapshot = 0;
    PrefixCache::Place latest_place;  // snapshot of its newest border

    std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
    std::int64_t remaining() const { return length() - n_computed; }
  };
  using Iterator = std::list<Sequence>::iterator;

  struct Tenant {
    double service = 0.0;  // rows computed for it
    std::int64_t n_sequences = 0;
  };

  std::int64_t pages_for(std::int64_t n_tokens) const;
  static Iterator find(std::list<Sequence>& sequences, SequenceId id);
  const Sequence* find_running(SequenceId id) const;
  bool runs_before(const Sequence& a, const Sequence& b) const;
  bool admitted_before(const Sequence& a, const Sequence& b, TimeUs now) const;

  bool plan_decodes(StepPlan& plan);
  void plan_prefills(StepPlan& plan, bool busy, TimeUs now);
  std::vector<Iterator> prefill_candidates(StepPlan& plan, TimeUs now);
  bool admit_next(StepPlan& plan, TimeUs now);
  bool reserve(StepPlan& plan, Sequence& sequence);
  static void assign_pages(StepPlan& plan, Sequence& sequence);
  void add_segment(StepPlan& plan, Sequence& sequence, std::int64_t n_tokens);
  std::int64_t prefill_end(const Sequence& sequence, std::int64_t n_tokens) const;

  Position prompt_border(const Sequence& sequence) const;
  void keep_snapshot(Sequence& sequence, Position before, bool decoded);

  bool grow(Iterator sequence, std::int64_t n_tokens);
  void preempt(Iterator sequence);
  void release(Sequence& sequence);
  void join_tenant(const std::string& name);
  void leave_tenant(const std::string& name);

  SchedulerConfig config_;
  PageLedger pages_;
  PrefixCache prefixes_;
  SlotLedger slots_;
  StepPacer pacer_;
  std::list<Sequence> waiting_;
  std::list<Sequence> running_;  // in rank order: runs_before
  std::map<std::string, Tenant> tenants_;
  std::vector<SnapshotTransfer> pending_saves_;
  std::vector<std::int32_t> pending_clears_;
  std::uint64_t n_arrivals_ = 0;
  std::int64_t n_preemptions_ = 0;
};

}  // namespace tandem::scheduler
