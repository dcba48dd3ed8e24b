#include "compute/cpu/cpu_kernels.h"
#include "tests/parity/subject.h"

namespace tandem::parity {

std::unique_ptr<kernels::Kernels> make_subject(kernels::Numerics numerics, int n_threads) {
  return cpu::make_fast_kernels(numerics, n_threads);
}

std::vector<int> thread_counts() {
  return {1, 2, 3};
}

}  // namespace tandem::parity
