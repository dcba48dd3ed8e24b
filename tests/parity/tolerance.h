// How far a fast op may be from the oracle, and why. Every parity test takes its bound from here.
//
// u = 2^-24 is the unit roundoff of float. The oracle sums in double; its own error is nothing at
// this scale, but for the last rounding to float (1 u).
//
// 1. A sum of n products. Each of L >= 4 lanes adds n / L products, one rounding each (fused
//    multiply-add), then the lanes are added (log2 L roundings) and the result is scaled by a power
//    of two. A chain of m roundings is off by at most m u sum|a b| to first order (Higham, Accuracy
//    and Stability, 3.1), so |error| <= (n / 4 + 8) u sum|a b|. See dot_bound().
//
// 2. bf16 results. Two values that differ by little may round to neighbours: one bf16 step, at most
//    2^-7 of the value. See bf16_step(). Where values are on the grid already and only float noise
//    precedes the rounding, flips are rare (noise / step = 2^-10 or less), but each is a full step.
//
// 3. Chains (norm, softmax, SwiGLU, Sinkhorn): a handful of such stages, each well conditioned.
//    Roundings behave like noise, so a chain over sums of n <= 16384 products stays near
//    sqrt(n / 4) u = 64 u = 2^-18 of the row's norm; kFloatRow leaves a factor of four for the
//    stages. Errors are taken as L2 over a row: single elements that cancel have no scale of their
//    own.
//
// 4. Chains under kNative. Rare flips of one bf16 step (2) and, behind an fp8 quantisation, of one
//    e4m3 step (2^-3 of one element, again only where a flip meets a boundary). If every element
//    flipped by one bf16 step the row would be off by 2^-8 in L2; kNativeRow is that.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/kernels/kernels.h"

namespace tandem::parity {

constexpr double kUnit = 0x1.0p-24;

inline double dot_bound(std::int64_t n, double sum_of_sizes) {
  return (static_cast<double>(n) / 4 + 8) * kUnit * sum_of_sizes;
}

inline double bf16_step(double value) {
  return std::fabs(value) * 0x1.0p-7;
}

constexpr double kFloatRow = 0x1.0p-16;
constexpr double kNativeRow = 0x1.0p-8;

inline double row_bound(kernels::Numerics numerics) {
  return numerics == kernels::Numerics::kNative ? kNativeRow : kFloatRow;
}

}  // namespace tandem::parity
