#include "compute/cpu/common/rotation.h"

#include <cmath>

namespace tandem::cpu {

Rotation rotation_at(Position position, const float* inv_freq, Turn turn) {
  Rotation rotation;
  const float sign = turn == Turn::kForward ? 1.0F : -1.0F;
  for (int k = 0; k < kRopePairs; ++k) {
    const float angle = static_cast<float>(position) * inv_freq[k];
    rotation.cosine[k] = static_cast<float>(std::cos(static_cast<double>(angle)));
    rotation.sine[k] = sign * static_cast<float>(std::sin(static_cast<double>(angle)));
  }
  return rotation;
}

void rotate(const Rotation& rotation, float* v) {
  for (int k = 0; k < kRopePairs; ++k) {
    const float a = v[2 * k];
    const float b = v[2 * k + 1];
    v[2 * k] = a * rotation.cosine[k] - b * rotation.sine[k];
    v[2 * k + 1] = a * rotation.sine[k] + b * rotation.cosine[k];
  }
}

}  // namespace tandem::cpu
