// MpiCommunicator: ranks are the processes of one mpirun job.
#pragma once

#include <memory>

#include "compute/comm/communicator.h"
#include "foundation/base/status.h"

namespace tandem::comm {

// Joins the job; blocks until all its ranks have joined. Once per process. Collectives may then be
// called from one thread at a time, which need not be this one; abort() from any.
// The destructor leaves the job, and must run on every rank.
// ERRORS: kFailedPrecondition if this process joined already or if the MPI library has no threads.
Result<std::unique_ptr<Communicator>> make_mpi_communicator();

}  // namespace tandem::comm
