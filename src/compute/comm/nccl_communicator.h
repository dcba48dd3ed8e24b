// NcclCommunicator: all-reduce and all-gather of device memory by NCCL, queued on the device's
// stream and part of recorded steps; everything else by the communicator that launched the ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compute/comm/communicator.h"
#include "compute/comm/nccl_library.h"

namespace tandem::comm {

struct NcclOptions {
  void* stream = nullptr;  // cudaStream_t of all work
  // Queued before every collective, so that a stuck step can be told from a slow one.
  std::function<void()> mark_collective;
};

class NcclCommunicator : public Communicator {
 public:
  // What NCCL reports of its transport; empty if all is well. Safe from any thread.
  virtual std::string transport_error() const = 0;
  // "2.28.3".
  virtual std::string version() const = 0;
};

// Joins all ranks of `inner`, which outlives the result. The destructor aborts the NCCL
// communicator and waits at most two seconds for that: NCCL's own orderly end waits for every graph
// that holds its kernels. ERRORS: kUnavailable with NCCL's words.
Result<std::unique_ptr<NcclCommunicator>> make_nccl_communicator(const NcclLibrary& nccl,
                                                                 Communicator& inner,
                                                                 const NcclOptions& options);

}  // namespace tandem::comm
