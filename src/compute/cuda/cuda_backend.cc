#include "compute/cuda/cuda_backend.h"

#include <utility>

#include "compute/cuda/cuda_device.h"
#include "compute/cuda/graph_recorder.h"

namespace tandem::cuda {
namespace {

class Backend final : public CudaBackend {
 public:
  Backend(std::unique_ptr<CudaDevice> gpu, std::unique_ptr<kernels::Kernels> ops,
          const CudaOptions& options)
      : gpu_(std::move(gpu)),
        ops_(std::move(ops)),
        recorder_(make_graph_recorder(gpu_->stream())),
        graphs_(*recorder_, options.max_graph_tokens, options.max_graphs) {}

  const CudaFacts& facts() const override { return gpu_->facts(); }
  device::Device& device() override { return *gpu_; }
  kernels::Kernels& kernels() override { return *ops_; }
  device::StepGraphs& graphs() override { return graphs_; }
  void* stream() override { return gpu_->stream(); }

 private:
  std::unique_ptr<CudaDevice> gpu_;
  std::unique_ptr<kernels::Kernels> ops_;
  std::unique_ptr<device::GraphRecorder> recorder_;
  device::StepGraphs graphs_;
};

}  // namespace

Result<std::unique_ptr<CudaBackend>> open_cuda_backend(const CudaOptions& options) {
  TANDEM_ASSIGN(std::unique_ptr<CudaDevice> gpu, make_cuda_device(options.ordinal));
  TANDEM_ASSIGN(std::unique_ptr<kernels::Kernels> ops,
                make_cuda_kernels(*gpu, gpu->stream(), options.numerics, options.scratch_bytes));
  return std::unique_ptr<CudaBackend>(
      std::make_unique<Backend>(std::move(gpu), std::move(ops), options));
}

}  // namespace tandem::cuda
