// The CUDA kernels on the host emulation, with memory that the host cannot touch: model code that
// reads device memory behind the device's back ends the test.
#include "compute/cuda/cuda_kernels.h"
#include "compute/cuda/emulation/guarded_device.h"
#include "tests/support/backend.h"

namespace tandem::testing {

Backend make_backend(kernels::Numerics numerics, bool) {
  constexpr std::int64_t kDeviceBytes = std::int64_t{512} << 20;
  constexpr std::int64_t kScratchBytes = std::int64_t{4} << 20;
  std::shared_ptr<device::Device> device = cuda::emulation::make_guarded_device(kDeviceBytes);
  return {device, cuda::make_cuda_kernels(*device, nullptr, numerics, kScratchBytes).value(),
          nullptr};
}

}  // namespace tandem::testing
