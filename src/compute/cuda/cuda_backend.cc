#include "compute/cuda/cuda_backend.h"

#include <utility>

#include "compute/cuda/cuda_device.h"
#include "compute/cuda/graph_recorder.h"
#include "compute/cuda/ops.h"

namespace tandem::cuda {
namespace {

class Backend final : public CudaBackend {
 public:
  Backend(std::unique_ptr<CudaDevice> gpu, std::unique_ptr<kernels::Kernels> ops,
          device::Buffer marks, const CudaOptions& options)
      : gpu_(std::move(gpu)),
        ops_(std::move(ops)),
        marks_(std::move(marks)),
        recorder_(make_graph_recorder(gpu_->stream())),
        graphs_(*recorder_, options.max_graph_tokens, options.max_graphs) {}

  const CudaFacts& facts() const override { return gpu_->facts(); }
  device::Device& device() override { return *gpu_; }
  kernels::Kernels& kernels() override { return *ops_; }
  device::StepGraphs& graphs() override { return graphs_; }
  void* stream() override { return gpu_->stream(); }
  void mark_collective() override { count_mark(gpu_->stream(), marks_.as<std::int64_t>()); }

  // The GPU writes it while the host looks.
  std::int64_t n_marks() const override {
    return *static_cast<const volatile std::int64_t*>(marks_.as<std::int64_t>());
  }

  void watch_steps(std::chrono::milliseconds limit, std::function<void()> on_stuck) override {
    gpu_->set_watch(
        limit, [this] { return n_marks(); }, std::move(on_stuck));
  }

 private:
  std::unique_ptr<CudaDevice> gpu_;
  std::unique_ptr<kernels::Kernels> ops_;
  device::Buffer marks_;
  std::unique_ptr<device::GraphRecorder> recorder_;
  device::StepGraphs graphs_;
};

}  // namespace

Result<std::unique_ptr<CudaBackend>> open_cuda_backend(const CudaOptions& options) {
  TANDEM_ASSIGN(std::unique_ptr<CudaDevice> gpu, make_cuda_device(options.ordinal));
  TANDEM_ASSIGN(std::unique_ptr<kernels::Kernels> ops,
                make_cuda_kernels(*gpu, gpu->stream(), options.numerics, options.scratch_bytes));
  TANDEM_ASSIGN(device::Buffer marks, gpu->allocate_shared(sizeof(std::int64_t), "marks"));
  return std::unique_ptr<CudaBackend>(
      std::make_unique<Backend>(std::move(gpu), std::move(ops), std::move(marks), options));
}

}  // namespace tandem::cuda
