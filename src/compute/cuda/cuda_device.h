// Memory of one GPU and the one stream that all work is queued on.
#pragma once

#include <memory>

#include "compute/cuda/cuda_backend.h"
#include "compute/device/device.h"

namespace tandem::cuda {

class CudaDevice : public device::Device {
 public:
  virtual void* stream() const = 0;
  virtual const CudaFacts& facts() const = 0;
};

// ERRORS: as of open_cuda_backend().
Result<std::unique_ptr<CudaDevice>> make_cuda_device(int ordinal);

}  // namespace tandem::cuda
