#include "compute/cuda/packed_rows.h"

#include "compute/cuda/device_math.h"
#include "compute/cuda/fragments.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBlock = 128;
constexpr int kPerLane = kBlock / kWarp;

// One warp per 128 values of a row; rows are many, so they lie in x.
__global__ void pack_kernel(const float* x, std::int64_t x_stride, std::int64_t cols,
                            tensor::WeightFormat format, bool quantise, std::uint16_t* out) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.y) * kWarps + warp_id()) * kBlock;
  if (first >= cols) {
    return;
  }
  float v[kPerLane];
  float amax = 0;
  for (int i = 0; i < kPerLane; ++i) {
    const std::int64_t c = first + i * kWarp + lane_id();
    v[i] = c < cols ? x[row * x_stride + c] : 0.0F;
    amax = fmaxf(amax, fabsf(v[i]));
  }
  const float scale = tensor::act_quant_scale(group_max(amax, kWarp));
  for (int i = 0; i < kPerLane; ++i) {
    const std::int64_t c = first + i * kWarp + lane_id();
    if (c < cols) {
      const float value = quantise ? through_e4m3(v[i], scale) : v[i];
      out[row * cols + packed_place(format, c)] = tensor::float_to_bf16(value);
    }
  }
}

}  // namespace

void pack_rows(const Context& context, const float* x, std::int64_t x_stride, std::int64_t n_rows,
               std::int64_t cols, tensor::WeightFormat format, bool quantise, std::uint16_t* out) {
  launch(pack_kernel, dim3(static_cast<unsigned>(n_rows), blocks_for(cols, kBlock * kWarps)),
         dim3(kThreads), 0, context.stream, x, x_stride, cols, format, quantise, out);
}

}  // namespace tandem::cuda
