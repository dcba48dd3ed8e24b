// Scalar helpers of the oracle: dot products in double, rounding that depends on the numerics.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/kernels/kernels.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::cpu::reference {

// bf16 under kNative, unchanged under kReference.
inline float rounded(kernels::Numerics numerics, double value) {
  const auto single = static_cast<float>(value);
  return numerics == kernels::Numerics::kNative ? tensor::round_bf16(single) : single;
}

inline double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

// 1 / sqrt(mean(x^2) + eps).
inline double inverse_rms(const float* x, std::int64_t n, float eps) {
  return 1.0 / std::sqrt(dot(x, x, n) / static_cast<double>(n) + static_cast<double>(eps));
}

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// rms(x, w) of model.md 2.0; `out` may be x.
inline void rms_row(kernels::Numerics numerics, const float* x, const std::uint16_t* weight,
                    std::int64_t n, float eps, float* out) {
  const double scale = inverse_rms(x, n, eps);
  for (std::int64_t i = 0; i < n; ++i) {
    const double w = static_cast<double>(tensor::bf16_to_float(weight[i]));
    out[i] = rounded(numerics, w * (static_cast<double>(x[i]) * scale));
  }
}

}  // namespace tandem::cpu::reference
