// Rotary position embedding of 64 dims: 32 interleaved pairs. SOURCE: model.md 2.0 rope, T1, T7.
#pragma once

#include "compute/tensor/row_format.h"
#include "foundation/base/ids.h"

namespace tandem::cpu {

constexpr int kRopePairs = tensor::kRopeDim / 2;

enum class Turn { kForward, kInverse };

// Cosines and sines of one position.
struct Rotation {
  float cosine[kRopePairs];
  float sine[kRopePairs];
};

// The angle is the float32 product p * f, as in training: at p = 10^6 an exact product would be
// another angle. Its cosine and sine are then as exact as float allows.
Rotation rotation_at(Position position, const float* inv_freq, Turn turn);

// Rotates v[0..63] in place.
void rotate(const Rotation& rotation, float* v);

}  // namespace tandem::cpu
