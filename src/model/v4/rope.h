// Rotation frequencies of the two tables. SOURCE: model.md 2.4.
#pragma once

#include <array>

#include "compute/tensor/row_format.h"

namespace tandem::v4 {

using InvFreq = std::array<float, tensor::kRopeDim / 2>;

// theta^(-2k/64), rounded to float32 where the checkpoint's own code rounds.
InvFreq plain_inv_freq(double theta);

struct YarnParams {
  double factor = 1;
  double original_positions = 0;
  double beta_fast = 32;
  double beta_slow = 1;
};

// The same, with low frequencies divided by the factor.
InvFreq yarn_inv_freq(double theta, const YarnParams& yarn);

}  // namespace tandem::v4
