// linear on the tensor cores.
#pragma once

#include "compute/cuda/ops.h"

namespace tandem::cuda {

// REQUIRES: fits_mma(args.w); inputs are bf16 values unless `quantise` makes them so.
void linear_mma(const Context& context, const kernels::LinearArgs& args, bool quantise, bool round);

}  // namespace tandem::cuda
