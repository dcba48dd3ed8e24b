// What kernels are written in: CUDA when nvcc compiles them, the emulation (every thread a fiber of
// the host) when a host compiler does. The same sources are compiled both ways, so each kernel's
// logic, indices and barriers are tested on machines without a GPU.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define TANDEM_UNROLL _Pragma("unroll")
#define TANDEM_DYNAMIC_SHARED(type, name)                     \
  extern __shared__ __align__(16) unsigned char name##_raw[]; \
  type* name = reinterpret_cast<type*>(name##_raw)
#else
#include "compute/cuda/emulation/emulation.h"
#define TANDEM_UNROLL
#define TANDEM_DYNAMIC_SHARED(type, name) \
  type* name = static_cast<type*>(::tandem::cuda::emulation::dynamic_shared())
#endif

namespace tandem::cuda {

constexpr unsigned kFullWarp = 0xFFFFFFFFU;
constexpr int kWarp = 32;

// Queues kernel(args...) on a stream. Errors stay sticky in the runtime; CudaKernels checks them
// after each op.
template <typename... Params, typename... Args>
void launch(void (*kernel)(Params...), dim3 grid, dim3 block, std::size_t shared_bytes,
            void* stream, const Args&... args) {
#ifdef __CUDACC__
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (shared_bytes > kWithoutAsking) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(shared_bytes));
  }
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(stream)>>>(args...);
#else
  (void)stream;
  if (emulation::recording() != nullptr) {
    emulation::recording()->push_back(
        [=] { emulation::run_grid(grid, block, shared_bytes, [&] { kernel(args...); }); });
    return;
  }
  emulation::run_grid(grid, block, shared_bytes, [&] { kernel(args...); });
#endif
}

}  // namespace tandem::cuda
