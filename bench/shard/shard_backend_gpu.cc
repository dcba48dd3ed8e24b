#include <fmt/format.h>

#include <utility>

#include "bench/shard/shard_backend.h"
#include "compute/cuda/cuda_backend.h"

namespace tandem::bench {
namespace {

class GpuBackend final : public ShardBackend {
 public:
  GpuBackend(std::unique_ptr<cuda::CudaBackend> cuda, device::Buffer sink, bool use_graphs)
      : cuda_(std::move(cuda)), sink_(std::move(sink)), use_graphs_(use_graphs) {}

  std::string name() const override {
    return fmt::format("{} ({} multiprocessors)", cuda_->facts().name,
                       cuda_->facts().n_multiprocessors);
  }
  device::Device& device() override { return cuda_->device(); }
  kernels::Kernels& kernels() override { return cuda_->kernels(); }
  device::StepGraphs* graphs() override { return use_graphs_ ? &cuda_->graphs() : nullptr; }

  void fill(const cuda::FillSpec& spec, void* data, std::int64_t n) override {
    cuda::fill_memory(cuda_->stream(), spec, data, n);
  }

  void read(const void* data, std::int64_t n) override {
    cuda::read_memory(cuda_->stream(), data, n, sink_.as<std::uint32_t>());
    cuda_->device().synchronize();
  }

 private:
  std::unique_ptr<cuda::CudaBackend> cuda_;
  device::Buffer sink_;
  bool use_graphs_;
};

}  // namespace

Result<std::unique_ptr<ShardBackend>> open_shard_backend(bool use_graphs) {
  TANDEM_ASSIGN(std::unique_ptr<cuda::CudaBackend> cuda, cuda::open_cuda_backend({}));
  TANDEM_ASSIGN(device::Buffer sink, cuda->device().allocate(256, "bench"));
  return std::unique_ptr<ShardBackend>(
      std::make_unique<GpuBackend>(std::move(cuda), std::move(sink), use_graphs));
}

}  // namespace tandem::bench
