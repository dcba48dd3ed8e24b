// Memory of one GPU and the one stream that all work is queued on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "compute/cuda/cuda_backend.h"
#include "compute/device/device.h"

namespace tandem::cuda {

class CudaDevice : public device::Device {
 public:
  virtual void* stream() const = 0;
  virtual const CudaFacts& facts() const = 0;

  // synchronize() calls on_stuck once if `progress` does not change for `limit` while work is
  // queued.
  virtual void set_watch(std::chrono::milliseconds limit, std::function<std::int64_t()> progress,
                         std::function<void()> on_stuck) = 0;
};

// ERRORS: as of open_cuda_backend().
Result<std::unique_ptr<CudaDevice>> make_cuda_device(int ordinal);

}  // namespace tandem::cuda
