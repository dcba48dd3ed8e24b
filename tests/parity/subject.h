// The implementation of Kernels that these tests are linked with: the same tests hold for SIMD, for
// the CUDA kernels on the host emulation, and for the CUDA kernels on a GPU.
#pragma once

#include <memory>
#include <vector>

#include "compute/kernels/kernels.h"

namespace tandem::parity {

// Ops of the result have finished when the call returns. `n_threads` is for implementations on host
// threads: results must not depend on it.
std::unique_ptr<kernels::Kernels> make_subject(kernels::Numerics numerics, int n_threads = 2);

// The numbers of threads that differ for this implementation.
std::vector<int> thread_counts();

}  // namespace tandem::parity
