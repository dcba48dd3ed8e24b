// PlanExecutor: does what a plan says on this rank's model. The same code runs on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/runtime/forward_model.h"
#include "engine/scheduler/step_plan.h"

namespace tandem::runtime {

class PlanExecutor {
 public:
  // n_snapshots: places of the snapshot store, in host memory, allocated here.
  PlanExecutor(ForwardModel& model, std::int32_t n_snapshots);

  // Memory operations, then the rows. The logits are valid until the next call.
  // ERRORS: those of the model; kDataLoss for a plan that names what does not exist here.
  Result<v4::StepOutput> run(const scheduler::StepPlan& plan);

  // The draft pass after run().
  Result<v4::DraftOutput> draft(const scheduler::DraftPlan& plan);

 private:
  Status check(const scheduler::StepPlan& plan) const;
  std::span<std::uint8_t> snapshot(std::int32_t index);

  ForwardModel& model_;
  ForwardSizes sizes_;
  std::vector<std::vector<std::uint8_t>> snapshots_;
  v4::StepInput input_;
};

}  // namespace tandem::runtime
