// The loop of every rank but rank 0: receive, execute, again.
#pragma once

#include <string>

#include "compute/comm/communicator.h"
#include "engine/runtime/forward_model.h"
#include "foundation/base/status.h"

namespace tandem::runtime {

struct WorkerOptions {
  std::int32_t n_snapshots = 0;  // as on rank 0
  std::string host;
};

// Returns when rank 0 shuts down. On an error this rank has left the common order: the caller ends
// the process with a non-zero code, which ends the job.
// ERRORS: kFailedPrecondition (the ranks do not fit together), kDataLoss (control channel), those
// of the model.
Status run_worker(const WorkerOptions& options, ForwardModel& model,
                  comm::Communicator& communicator);

}  // namespace tandem::runtime
