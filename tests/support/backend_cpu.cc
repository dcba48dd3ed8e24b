#include "compute/cpu/cpu_kernels.h"
#include "tests/support/backend.h"

namespace tandem::testing {

Backend make_backend(kernels::Numerics numerics, bool plain) {
  return {device::make_cpu_device(),
          plain ? cpu::make_reference_kernels(numerics) : cpu::make_fast_kernels(numerics, 1),
          nullptr};
}

}  // namespace tandem::testing
