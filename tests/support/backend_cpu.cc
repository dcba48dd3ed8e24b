#include "compute/cpu/cpu_kernels.h"
#include "tests/support/backend.h"

namespace tandem::testing {

Backend make_backend(kernels::Numerics numerics) {
  return {device::make_cpu_device(), cpu::make_fast_kernels(numerics, 1), nullptr};
}

TestSize test_size() {
  return {{1, 5, 127, 128, 129, 130, 256, 257, 600, 2060}, 16};
}

}  // namespace tandem::testing
