#include "engine/runtime/worker.h"

#include "engine/runtime/control_channel.h"
#include "engine/runtime/plan_executor.h"

namespace tandem::runtime {

Status run_worker(const WorkerOptions& options, ForwardModel& model,
                  comm::Communicator& communicator) {
  const auto met = meet_ranks(communicator, model.sizes(), options.host);
  if (!met.ok()) {
    return met.status();
  }
  ControlChannel control(communicator);
  PlanExecutor executor(model, options.n_snapshots);
  for (;;) {
    TANDEM_ASSIGN(const scheduler::ControlMessage message, control.receive());
    switch (message.kind) {
      case scheduler::MessageKind::kStep: {
        const auto out = executor.run(message.step);
        if (!out.ok()) {
          return out.status();
        }
        break;
      }
      case scheduler::MessageKind::kDraft: {
        const auto out = executor.draft(message.draft);
        if (!out.ok()) {
          return out.status();
        }
        break;
      }
      case scheduler::MessageKind::kHeartbeat:
        control.roll_call();
        break;
      case scheduler::MessageKind::kShutdown:
        return ok_status();
    }
  }
}

}  // namespace tandem::runtime
