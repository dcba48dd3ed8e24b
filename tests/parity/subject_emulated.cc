// Kernels of compute/cuda, every thread a fiber of this process. Little scratch: large steps must
// give the same results in several passes.
#include "compute/cuda/cuda_kernels.h"
#include "tests/parity/subject.h"

namespace tandem::parity {

std::unique_ptr<kernels::Kernels> make_subject(kernels::Numerics numerics, int n_threads) {
  static const std::unique_ptr<device::Device> device = device::make_cpu_device();
  const std::int64_t scratch_bytes = std::int64_t{n_threads} << 20;
  return cuda::make_cuda_kernels(*device, nullptr, numerics, scratch_bytes).value();
}

std::vector<int> thread_counts() {
  return {1};
}

}  // namespace tandem::parity
