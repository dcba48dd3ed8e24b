#include "compute/cuda/cuda_backend.h"
#include "tests/support/backend.h"

namespace tandem::testing {

Backend make_backend(kernels::Numerics numerics, bool) {
  cuda::CudaOptions options;
  options.numerics = numerics;
  std::shared_ptr<cuda::CudaBackend> opened = cuda::open_cuda_backend(options).value();
  return {std::shared_ptr<device::Device>(opened, &opened->device()),
          std::shared_ptr<kernels::Kernels>(opened, &opened->kernels()),
          std::shared_ptr<device::StepGraphs>(opened, &opened->graphs())};
}

}  // namespace tandem::testing
