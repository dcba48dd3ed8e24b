// StepLoop: rank 0's side of the engine, one step at a time and without threads: plan, send,
// forward, sample, commit, draft. ModelEngine gives it a thread, an inbox and a watchdog.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "compute/comm/communicator.h"
#include "engine/runtime/control_channel.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_options.h"
#include "engine/runtime/event_router.h"
#include "engine/runtime/plan_executor.h"
#include "engine/runtime/sequence_state.h"
#include "engine/scheduler/scheduler.h"
#include "engine/speculation/depth_policy.h"

namespace tandem::runtime {

scheduler::SchedulerConfig scheduler_config(const EngineOptions& options,
                                            const ForwardSizes& sizes);

class StepLoop {
 public:
  // Called with the stats before the events that made them are sent.
  using StatsSink = std::function<void(const EngineStats&)>;

  // All but options and the sink outlive the loop. REQUIRES: scheduler_config() is valid.
  StepLoop(const EngineOptions& options, ForwardModel& model, comm::Communicator& communicator,
           EventRouter& events, StatsSink stats_sink);

  // A request that submit() accepted. What is wrong with it becomes its last event.
  void add(SequenceId id, GenerationRequest request);
  void cancel(SequenceId id);
  bool idle() const { return scheduler_.idle(); }

  // Runs one step. An error means that the ranks can no longer be trusted.
  Status step();
  // Returns once every rank has answered.
  void heartbeat();
  // The other ranks leave their loops.
  void shutdown();

 private:
  using Results = std::vector<scheduler::SegmentResult>;

  Results sample(const scheduler::StepPlan& plan, const v4::StepOutput& out);
  void sample_segment(const scheduler::PlanSegment& segment, const v4::StepOutput& out,
                      std::size_t first_logit_row, scheduler::SegmentResult& result);
  Status propose_drafts(const scheduler::StepPlan& plan, const Results& results);
  Status run_drafter(const scheduler::StepPlan& plan, const Results& results,
                     const std::vector<std::int32_t>& n_drafts);
  void take_drafts(const std::vector<SequenceId>& ids, v4::DraftOutput out);
  void record_cost(const scheduler::StepPlan& plan, TimeUs step_us);
  void finish(SequenceState& state, FinishReason reason, Status error, GenerationEvent event);
  void forget(SequenceId id) {
    states_.erase(id);
    forced_.erase(id);
  }
  void publish();

  EngineOptions options_;
  ForwardSizes sizes_;
  const Clock& clock_;
  EventRouter& events_;
  ControlChannel control_;
  PlanExecutor executor_;
  scheduler::Scheduler scheduler_;
  speculation::DepthPolicy depths_;
  sampling::Sampler sampler_;
  std::map<SequenceId, std::unique_ptr<SequenceState>> states_;
  std::set<SequenceId> forced_;  // sequences whose next drafts come from the grammar
  EngineStats stats_;
  StatsSink stats_sink_;
  std::vector<GenerationEvent> outbox_;  // of the step that runs
};

}  // namespace tandem::runtime
