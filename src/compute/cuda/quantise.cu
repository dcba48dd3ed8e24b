#include "compute/cuda/quantise.h"

#include "compute/cuda/device_math.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kBlock = 128;
constexpr int kPerLane = kBlock / kWarp;

// One warp per block of 128 values.
__global__ void quantise_kernel(const float* x, std::int64_t x_stride, std::int64_t cols,
                                float* out, std::int64_t out_stride) {
  const std::int64_t row = blockIdx.y;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + warp_id()) * kBlock;
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
      out[row * out_stride + c] = through_e4m3(v[i], scale);
    }
  }
}

}  // namespace

void quantise_rows(const Context& context, const float* x, std::int64_t x_stride,
                   std::int64_t n_rows, std::int64_t cols, float* out, std::int64_t out_stride) {
  launch(quantise_kernel, dim3(blocks_for(cols, kBlock * kWarps), static_cast<unsigned>(n_rows)),
         dim3(kThreads), 0, context.stream, x, x_stride, cols, out, out_stride);
}

}  // namespace tandem::cuda
