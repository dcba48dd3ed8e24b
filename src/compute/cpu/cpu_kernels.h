// The two CPU implementations of Kernels.
#pragma once

#include <memory>

#include "compute/kernels/kernels.h"

namespace tandem::cpu {

// Plain float loops, one thread: the oracle that the others are compared with.
std::unique_ptr<kernels::Kernels> make_reference_kernels(kernels::Numerics numerics);

// SIMD on packed weights with n_threads worker threads (1 = the caller alone).
std::unique_ptr<kernels::Kernels> make_fast_kernels(kernels::Numerics numerics, int n_threads);

}  // namespace tandem::cpu
