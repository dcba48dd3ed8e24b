#include "engine/runtime/model_engine.h"

#include <utility>

#include "engine/runtime/engine_core.h"

namespace tandem::runtime {

ModelEngine::ModelEngine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {}

ModelEngine::~ModelEngine() {
  static_cast<void>(stop());
}

Result<SequenceId> ModelEngine::submit(GenerationRequest request, EventSink sink) {
  return core_->submit(std::move(request), std::move(sink));
}

void ModelEngine::cancel(SequenceId sequence) {
  core_->cancel(sequence);
}

EngineHealth ModelEngine::health() const {
  return core_->health();
}

EngineStats ModelEngine::stats() const {
  return core_->stats();
}

EngineLimits ModelEngine::limits() const {
  return core_->limits();
}

Status ModelEngine::stop() {
  return core_->stop();
}

Result<std::unique_ptr<ModelEngine>> make_engine(const EngineOptions& options, ForwardModel& model,
                                                 comm::Communicator& communicator) {
  const ForwardSizes sizes = model.sizes();
  TANDEM_TRY(scheduler_config(options, sizes).validate());
  if (communicator.rank() != 0) {
    return invalid_argument("rank {} cannot be the engine; it runs run_worker",
                            communicator.rank());
  }
  TANDEM_ASSIGN(std::vector<std::string> hosts, meet_ranks(communicator, sizes, options.host));
  auto core = std::make_shared<EngineCore>(options, model, communicator, std::move(hosts));
  EngineCore::start(core);
  return std::make_unique<ModelEngine>(std::move(core));
}

}  // namespace tandem::runtime
