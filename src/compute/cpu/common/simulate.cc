#include "compute/cpu/common/simulate.h"

#include <algorithm>
#include <cmath>

#include "compute/tensor/numeric_formats.h"

namespace tandem::cpu {
namespace {

float max_abs(const float* x, std::int64_t n) {
  float amax = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    amax = std::max(amax, std::fabs(x[i]));
  }
  return amax;
}

// The product q * s has at most 4 significant bits, so it is already a bf16 value.
void quantise_block(const float* x, std::int64_t n, float* out) {
  const float scale = tensor::act_quant_scale(max_abs(x, n));
  const float inverse = 1.0F / scale;  // exact: a power of two
  for (std::int64_t i = 0; i < n; ++i) {
    const float clamped = std::clamp(x[i] * inverse, -448.0F, 448.0F);
    out[i] = tensor::e4m3_to_float(tensor::float_to_e4m3(clamped)) * scale;
  }
}

}  // namespace

void act_quant_128(const float* x, std::int64_t n, float* out) {
  constexpr std::int64_t kBlock = 128;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    quantise_block(x + begin, std::min(kBlock, n - begin), out + begin);
  }
}

void act_sim_64(float* x, int n) {
  constexpr int kBlock = 64;
  for (int begin = 0; begin < n; begin += kBlock) {
    quantise_block(x + begin, std::min(kBlock, n - begin), x + begin);
  }
}

void fp4_sim_32(float* x, int n) {
  constexpr int kBlock = 32;
  for (int begin = 0; begin < n; begin += kBlock) {
    const int end = std::min(n, begin + kBlock);
    const float scale = tensor::fp4_scale(max_abs(x + begin, end - begin));
    for (int i = begin; i < end; ++i) {
      x[i] = tensor::e2m1_to_float(tensor::float_to_e2m1(x[i] / scale)) * scale;
    }
  }
}

void hadamard_128(float* v) {
  constexpr int kDim = 128;
  for (int stride = 1; stride < kDim; stride *= 2) {
    for (int begin = 0; begin < kDim; begin += 2 * stride) {
      for (int i = begin; i < begin + stride; ++i) {
        const float a = v[i];
        const float b = v[i + stride];
        v[i] = a + b;
        v[i + stride] = a - b;
      }
    }
  }
  const float norm = 1.0F / std::sqrt(static_cast<float>(kDim));
  for (int i = 0; i < kDim; ++i) {
    v[i] = tensor::round_bf16(v[i] * norm);
  }
}

void round_bf16_row(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = tensor::round_bf16(x[i]);
  }
}

}  // namespace tandem::cpu
