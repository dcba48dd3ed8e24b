// One row of a packed weight as floats. SOURCE: model.md 2.0 formats and packing.
#pragma once

#include <cstdint>

#include "compute/tensor/weight_matrix.h"

namespace tandem::cpu::reference {

// out[c] = W[row, c] with its block scale applied, [w.cols].
void decode_weight_row(const tensor::WeightMatrix& w, std::int64_t row, float* out);

}  // namespace tandem::cpu::reference
