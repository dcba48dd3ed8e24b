// What a rank's model runs on, by the config's `device`: CPU kernels, or a GPU with its
// collectives.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "compute/comm/communicator.h"
#include "compute/cuda/cuda_backend.h"
#include "compute/device/device.h"
#include "compute/kernels/kernels.h"
#include "foundation/base/status.h"
#include "model/v4/model.h"

namespace tandem::apps {

struct ComputeOptions {
  std::string device = "cpu";  // or "cuda"
  kernels::Numerics numerics = kernels::Numerics::kNative;
  int n_threads = 1;
};

class ComputeParts {
 public:
  virtual ~ComputeParts() = default;
  virtual v4::ModelParts parts() = 0;
  // What an allocation may take now; -1: as much as the system has.
  virtual std::int64_t available_bytes() const = 0;
  // What the kernels take for themselves.
  virtual std::int64_t scratch_bytes() const = 0;
};

// `communicator` launched the ranks and outlives the result. `say` gets lines for the operator:
// which GPU, and how its ranks exchange data. ERRORS: kUnimplemented for cuda in a build without
// it; those of open_cuda_backend().
Result<std::unique_ptr<ComputeParts>> open_compute(
    const ComputeOptions& options, comm::Communicator& communicator,
    const std::function<void(const std::string&)>& say);

}  // namespace tandem::apps
