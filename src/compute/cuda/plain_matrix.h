// Matrix products in float32, one warp per output: for float32 activations (`reference` numerics)
// and for shapes that the tensor-core kernels do not take.
#pragma once

#include "compute/cuda/device_math.h"
#include "compute/tensor/weight_matrix.h"

namespace tandem::cuda {

// W[row, col] with its scale. SOURCE: model.md 2.0 formats and packing.
__device__ inline float weight_at(const tensor::WeightMatrix& w, std::int64_t row,
                                  std::int64_t col) {
  const std::int64_t i = row * w.cols + col;
  switch (w.format) {
    case tensor::WeightFormat::kF32:
      return static_cast<const float*>(w.data)[i];
    case tensor::WeightFormat::kBf16:
      return tensor::bf16_to_float(static_cast<const std::uint16_t*>(w.data)[i]);
    case tensor::WeightFormat::kFp8:
      return tensor::e4m3_to_float(static_cast<const std::uint8_t*>(w.data)[i]) *
             tensor::e8m0_to_float(w.scales[row / 128 * ((w.cols + 127) / 128) + col / 128]);
    case tensor::WeightFormat::kFp4: {
      const std::uint8_t pair = static_cast<const std::uint8_t*>(w.data)[i / 2];
      const auto nibble = static_cast<std::uint8_t>(col % 2 == 0 ? pair & 15 : pair >> 4);
      return tensor::e2m1_to_float(nibble) *
             tensor::e8m0_to_float(w.scales[row * (w.cols / 32) + col / 32]);
    }
  }
  return 0;
}

// W[row] . x, the same bits in every lane. The order of the sum depends on w.cols alone.
__device__ inline float warp_dot(const tensor::WeightMatrix& w, std::int64_t row, const float* x) {
  float sum = 0;
  for (std::int64_t c = lane_id(); c < w.cols; c += kWarp) {
    sum += weight_at(w, row, c) * x[c];
  }
  return warp_sum(sum);
}

// Matrix of expert e.
__device__ inline tensor::WeightMatrix expert_of(const kernels::ExpertStack& stack,
                                                 std::int64_t e) {
  tensor::WeightMatrix w = stack.first;
  w.data = static_cast<const std::uint8_t*>(w.data) + e * stack.data_stride_bytes;
  if (w.scales != nullptr) {
    w.scales += e * stack.scale_stride_bytes;
  }
  return w;
}

}  // namespace tandem::cuda
