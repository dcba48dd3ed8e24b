#include "compute/cuda/cuda_backend.h"
#include "tests/support/backend.h"

namespace tandem::testing {

Backend make_backend(kernels::Numerics numerics) {
  cuda::CudaOptions options;
  options.numerics = numerics;
  std::shared_ptr<cuda::CudaBackend> opened = cuda::open_cuda_backend(options).value();
  return {std::shared_ptr<device::Device>(opened, &opened->device()),
          std::shared_ptr<kernels::Kernels>(opened, &opened->kernels()),
          std::shared_ptr<device::StepGraphs>(opened, &opened->graphs())};
}

TestSize test_size() {
  return {{1, 5, 127, 128, 129, 130, 256, 257, 600, 2060, 4100, 9000}, 16};
}

}  // namespace tandem::testing
