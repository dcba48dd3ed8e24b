// CudaBackend: one GPU as the rest of the program sees it. Declared in every build; a build without
// CUDA answers open_cuda_backend() with kUnimplemented.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "compute/cuda/cuda_kernels.h"
#include "compute/device/device.h"
#include "compute/device/step_graphs.h"
#include "compute/kernels/kernels.h"
#include "foundation/base/status.h"

namespace tandem::cuda {

struct CudaOptions {
  int ordinal = 0;  // which GPU of this machine
  kernels::Numerics numerics = kernels::Numerics::kNative;
  std::int64_t scratch_bytes = kScratchBytes;
  std::int32_t max_graph_tokens = 64;  // rows of the largest step that is replayed; 0: none is
  std::int64_t max_graphs = 256;
};

// What a start-up report says about the GPU.
struct CudaFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int n_multiprocessors = 0;
  bool unified = false;              // GPU and CPU share one memory, as on the GB10
  std::int64_t total_bytes = 0;      // memory of the GPU
  std::int64_t available_bytes = 0;  // what an allocation may take now, see available_memory()
};

class CudaBackend {
 public:
  virtual ~CudaBackend() = default;
  virtual const CudaFacts& facts() const = 0;
  virtual device::Device& device() = 0;
  virtual kernels::Kernels& kernels() = 0;
  virtual device::StepGraphs& graphs() = 0;
  virtual void* stream() = 0;  // cudaStream_t of all work

  // Queues a mark ahead of a collective; n_marks() counts those that the GPU has reached.
  virtual void mark_collective() = 0;
  virtual std::int64_t n_marks() const = 0;

  // From now on a step that reaches no mark for `limit` calls on_stuck, which ends the job.
  virtual void watch_steps(std::chrono::milliseconds limit, std::function<void()> on_stuck) = 0;
};

// ERRORS: kUnimplemented in a build without CUDA; kUnavailable without a driver or such a GPU, or
// for one that these kernels were not compiled for; kResourceExhausted.
Result<std::unique_ptr<CudaBackend>> open_cuda_backend(const CudaOptions& options);

}  // namespace tandem::cuda
