// Residual streams outside the hyper-connections, and the row RMS norm.
// SOURCE: model.md 2.0 rms, 2.1, 2.14, 2.15 (a).
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;

__global__ void embed_kernel(kernels::EmbedArgs args) {
  const std::int64_t t = blockIdx.x;
  const std::uint16_t* row = args.table + std::int64_t{args.rows.tokens[t]} * args.hidden;
  for (std::int64_t i = threadIdx.x; i < args.hidden; i += blockDim.x) {
    const float value = tensor::bf16_to_float(row[i]);
    for (std::int64_t s = 0; s < args.hc_mult; ++s) {
      args.streams[(t * args.hc_mult + s) * args.hidden + i] = value;
    }
  }
}

__global__ void rms_norm_kernel(bool native, kernels::RmsNormArgs args) {
  __shared__ float sums[kThreads / kWarp];
  const float* x = args.x + static_cast<std::int64_t>(blockIdx.x) * args.dim;
  float* out = args.out + static_cast<std::int64_t>(blockIdx.x) * args.dim;
  float sum = 0;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < args.dim;
       i += static_cast<std::int32_t>(blockDim.x)) {
    sum += x[i] * x[i];
  }
  sum = block_sum(sum, sums);
  const float scale = 1.0F / sqrtf(sum / static_cast<float>(args.dim) + args.eps);
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < args.dim;
       i += static_cast<std::int32_t>(blockDim.x)) {
    out[i] = rounded(native, tensor::bf16_to_float(args.weight[i]) * (x[i] * scale));
  }
}

__global__ void stream_mean_kernel(bool native, kernels::StreamMeanArgs args) {
  const std::int64_t t = blockIdx.y;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= args.hidden) {
    return;
  }
  const float* streams = args.streams + t * args.hc_mult * args.hidden;
  float sum = 0;
  for (std::int64_t s = 0; s < args.hc_mult; ++s) {
    sum += streams[s * args.hidden + i];
  }
  args.out[t * args.out_stride + i] = rounded(native, sum / static_cast<float>(args.hc_mult));
}

__global__ void stream_add_kernel(bool native, kernels::StreamAddArgs args) {
  const std::int64_t t = blockIdx.y;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= args.hidden) {
    return;
  }
  const float e = args.e[t * args.hidden + i];
  for (std::int64_t s = 0; s < args.hc_mult; ++s) {
    float& value = args.streams[(t * args.hc_mult + s) * args.hidden + i];
    value = rounded(native, value + e);
  }
}

__global__ void count_kernel(volatile std::int64_t* counter) {
  if (threadIdx.x == 0) {
    *counter = *counter + 1;
  }
}

// Blocks of (columns, tokens).
dim3 columns_and_rows(std::int32_t columns, std::int32_t rows) {
  return dim3(blocks_for(columns, kThreads), static_cast<unsigned>(rows));
}

}  // namespace

const char* last_launch_error() {
#ifdef __CUDACC__
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
#else
  return nullptr;
#endif
}

void count_mark(void* stream, std::int64_t* counter) {
  launch(count_kernel, dim3(1), dim3(kWarp), 0, stream,
         static_cast<volatile std::int64_t*>(counter));
}

void embed(const Context& context, const kernels::EmbedArgs& args) {
  launch(embed_kernel, dim3(static_cast<unsigned>(args.rows.n_tokens)), dim3(kThreads), 0,
         context.stream, args);
}

void rms_norm(const Context& context, const kernels::RmsNormArgs& args) {
  launch(rms_norm_kernel, dim3(static_cast<unsigned>(args.n_rows)), dim3(kThreads), 0,
         context.stream, context.native, args);
}

void stream_mean(const Context& context, const kernels::StreamMeanArgs& args) {
  launch(stream_mean_kernel, columns_and_rows(args.hidden, args.n_tokens), dim3(kThreads), 0,
         context.stream, context.native, args);
}

void stream_add(const Context& context, const kernels::StreamAddArgs& args) {
  launch(stream_add_kernel, columns_and_rows(args.hidden, args.n_tokens), dim3(kThreads), 0,
         context.stream, context.native, args);
}

}  // namespace tandem::cuda
