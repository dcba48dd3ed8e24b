// experts on the tensor cores, tokens grouped by expert.
#pragma once

#include "compute/cuda/ops.h"

namespace tandem::cuda {

// Whether all matrices have formats, shapes and alignment that experts_mma() takes.
bool experts_fit_mma(const kernels::ExpertsArgs& args);

void experts_mma(const Context& context, const kernels::ExpertsArgs& args);

}  // namespace tandem::cuda
