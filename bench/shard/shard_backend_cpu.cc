#include <utility>

#include "bench/shard/shard_backend.h"
#include "compute/cpu/cpu_kernels.h"

namespace tandem::bench {
namespace {

class CpuBackend final : public ShardBackend {
 public:
  std::string name() const override { return "cpu"; }
  device::Device& device() override { return *device_; }
  kernels::Kernels& kernels() override { return *kernels_; }
  device::StepGraphs* graphs() override { return nullptr; }

  void fill(const cuda::FillSpec& spec, void* data, std::int64_t n) override {
    for (std::int64_t i = 0; i < n; ++i) {
      cuda::fill_element(spec, data, i);
    }
  }

  void read(const void* data, std::int64_t n) override {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i + 8 <= n; i += 8) {
      sum += *reinterpret_cast<const std::uint64_t*>(static_cast<const std::uint8_t*>(data) + i);
    }
    sink_ = sum;
  }

 private:
  std::unique_ptr<device::Device> device_ = device::make_cpu_device();
  std::unique_ptr<kernels::Kernels> kernels_ =
      cpu::make_fast_kernels(kernels::Numerics::kNative, 1);
  volatile std::uint64_t sink_ = 0;
};

}  // namespace

Result<std::unique_ptr<ShardBackend>> open_shard_backend(bool) {
  return std::unique_ptr<ShardBackend>(std::make_unique<CpuBackend>());
}

}  // namespace tandem::bench
