#include "compute/cuda/cuda_backend.h"

namespace tandem::cuda {

Result<std::unique_ptr<CudaBackend>> open_cuda_backend(const CudaOptions& options) {
  return Status(StatusCode::kUnimplemented,
                fmt::format("GPU {}: this program was built without CUDA; build it with "
                            "`./dev build cuda` on a machine with the CUDA 13 toolkit, or run with "
                            "device = cpu",
                            options.ordinal));
}

}  // namespace tandem::cuda
