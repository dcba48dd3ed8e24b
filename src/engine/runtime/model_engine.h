// ModelEngine: the engine that runs a model. Owns the engine thread of rank 0, the inbox between
// callers and that thread, the watchdog and the verdict on health.
#pragma once

#include <memory>

#include "compute/comm/communicator.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_options.h"
#include "engine/runtime/forward_model.h"
#include "foundation/base/status.h"

namespace tandem::runtime {

class EngineCore;

class ModelEngine final : public Engine {
 public:
  explicit ModelEngine(std::shared_ptr<EngineCore> core);
  ~ModelEngine() override;
  ModelEngine(const ModelEngine&) = delete;
  ModelEngine& operator=(const ModelEngine&) = delete;

  Result<SequenceId> submit(GenerationRequest request, EventSink sink) override;
  void cancel(SequenceId sequence) override;
  EngineHealth health() const override;
  EngineStats stats() const override;
  EngineLimits limits() const override;

  // Ends all sequences with kUnavailable, lets the other ranks go, joins the engine thread. Always
  // returns, after options.stop_us at the latest. Further calls give the first answer.
  // ERRORS: what poisoned the engine; kDeadlineExceeded if a step does not end. Then threads may
  // still use model and communicator: end the job with Communicator::abort.
  Status stop();

 private:
  std::shared_ptr<EngineCore> core_;
};

// Rank 0; the others call run_worker at the same time. model and communicator outlive the engine.
// ERRORS: kInvalidArgument (options and sizes that make no sense), kFailedPrecondition (ranks that
// do not fit together).
Result<std::unique_ptr<ModelEngine>> make_engine(const EngineOptions& options, ForwardModel& model,
                                                 comm::Communicator& communicator);

}  // namespace tandem::runtime
