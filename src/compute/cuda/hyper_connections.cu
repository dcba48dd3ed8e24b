// Manifold-constrained hyper-connections: the mixing numbers of all rows first (the matrix is read
// by many blocks), then one block per row. SOURCE: model.md 2.2, traps T11-T15.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kStreams = 4;
constexpr int kMixes = (2 + kStreams) * kStreams;
constexpr int kRowsPerBlock = 4;

// mixes[r * (n_mixes + 1) + m] = fn[m] . streams[row r]; entry n_mixes is the sum of squares.
__global__ void mixes_kernel(const float* streams, const std::int32_t* rows, std::int32_t n_rows,
                             std::int64_t flat, const float* fn, std::int32_t n_mixes,
                             float* mixes) {
  __shared__ float sums[kThreads / kWarp];
  const auto m = static_cast<std::int32_t>(blockIdx.x);
  const auto first = static_cast<std::int32_t>(blockIdx.y) * kRowsPerBlock;
  for (std::int32_t r = first; r < first + kRowsPerBlock && r < n_rows; ++r) {
    const float* v = streams + (rows != nullptr ? rows[r] : r) * flat;
    const float* weights = m < n_mixes ? fn + m * flat : v;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < flat; i += blockDim.x) {
      sum += weights[i] * v[i];
    }
    sum = block_sum(sum, sums);
    if (threadIdx.x == 0) {
      mixes[r * (n_mixes + 1) + m] = sum;
    }
  }
}

__device__ void normalise(float* values, int stride, float eps) {
  float sum = eps;
  for (int k = 0; k < kStreams; ++k) {
    sum += values[k * stride];
  }
  for (int k = 0; k < kStreams; ++k) {
    values[k * stride] /= sum;
  }
}

__device__ void softmax(float* row) {
  float largest = row[0];
  for (int k = 1; k < kStreams; ++k) {
    largest = fmaxf(largest, row[k]);
  }
  float sum = 0;
  for (int k = 0; k < kStreams; ++k) {
    row[k] = expf(row[k] - largest);
    sum += row[k];
  }
  for (int k = 0; k < kStreams; ++k) {
    row[k] /= sum;
  }
}

// Row softmax, then alternating normalisation, one thread. SOURCE: model.md 2.2.
__device__ void sinkhorn(int iters, float eps, float* c) {
  for (int j = 0; j < kStreams; ++j) {
    softmax(c + j * kStreams);
  }
  for (int i = 0; i < kStreams * kStreams; ++i) {
    c[i] += eps;
  }
  for (int iter = 0; iter < iters; ++iter) {
    for (int j = 0; iter > 0 && j < kStreams; ++j) {
      normalise(c + j * kStreams, 1, eps);
    }
    for (int k = 0; k < kStreams; ++k) {
      normalise(c + k, kStreams, eps);
    }
  }
}

// Collapse with the gates, then the RMS norm; `collapsed` may be nullptr.
__device__ void collapse_and_norm(bool native, const float* gates, const float* streams,
                                  std::int32_t hidden, float eps, const std::uint16_t* norm,
                                  float* collapsed, float* out, float* sums) {
  float squares = 0;
  for (std::int32_t d = static_cast<std::int32_t>(threadIdx.x); d < hidden;
       d += static_cast<std::int32_t>(blockDim.x)) {
    float y = 0;
    for (int i = 0; i < kStreams; ++i) {
      y += gates[i] * streams[static_cast<std::int64_t>(i) * hidden + d];
    }
    y = rounded(native, y);
    squares += y * y;
    out[d] = y;  // read again by the same thread below
    if (collapsed != nullptr) {
      collapsed[d] = y;
    }
  }
  squares = block_sum(squares, sums);
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(hidden) + eps);
  for (std::int32_t d = static_cast<std::int32_t>(threadIdx.x); d < hidden;
       d += static_cast<std::int32_t>(blockDim.x)) {
    out[d] = rounded(native, tensor::bf16_to_float(norm[d]) * (out[d] * scale));
  }
}

__device__ float mix_scale(const float* mixes, int n_mixes, std::int64_t flat, float eps) {
  return 1.0F / sqrtf(mixes[n_mixes] / static_cast<float>(flat) + eps);
}

__global__ void hc_pre_kernel(bool native, kernels::HcPreArgs args, const float* all_mixes) {
  __shared__ float sums[kThreads / kWarp];
  __shared__ float gates[kMixes];
  const std::int64_t t = blockIdx.x;
  const std::int64_t flat = std::int64_t{kStreams} * args.hidden;
  const float* mixes = all_mixes + t * (kMixes + 1);
  if (threadIdx.x == 0) {
    const float scale = mix_scale(mixes, kMixes, flat, args.norm_eps);
    for (int i = 0; i < kMixes; ++i) {
      const int part = i < kStreams ? 0 : i < 2 * kStreams ? 1 : 2;
      gates[i] = mixes[i] * scale * args.scale[part] + args.base[i];
    }
    for (int i = 0; i < kStreams; ++i) {
      gates[i] = sigmoid(gates[i]) + args.hc_eps;
      args.post[t * kStreams + i] = 2.0F * sigmoid(gates[kStreams + i]);
    }
    sinkhorn(args.sinkhorn_iters, args.hc_eps, gates + 2 * kStreams);
    for (int i = 0; i < kStreams * kStreams; ++i) {
      args.comb[t * kStreams * kStreams + i] = gates[2 * kStreams + i];
    }
  }
  __syncthreads();
  collapse_and_norm(native, gates, args.streams + t * flat, args.hidden, args.norm_eps, args.norm,
                    nullptr, args.out + t * args.hidden, sums);
}

__global__ void hc_head_kernel(bool native, kernels::HcHeadArgs args, const float* all_mixes) {
  __shared__ float sums[kThreads / kWarp];
  __shared__ float gates[kStreams];
  const std::int64_t r = blockIdx.x;
  const std::int64_t flat = std::int64_t{kStreams} * args.hidden;
  const float* mixes = all_mixes + r * (kStreams + 1);
  if (threadIdx.x < kStreams) {
    const float scale = mix_scale(mixes, kStreams, flat, args.norm_eps);
    const float mixed = mixes[threadIdx.x] * scale * args.scale[0] + args.base[threadIdx.x];
    gates[threadIdx.x] = sigmoid(mixed) + args.hc_eps;
  }
  __syncthreads();
  collapse_and_norm(native, gates, args.streams + args.rows[r] * flat, args.hidden, args.norm_eps,
                    args.norm,
                    args.collapsed != nullptr ? args.collapsed + r * args.hidden : nullptr,
                    args.out + r * args.hidden, sums);
}

// comb is used transposed (T11).
__global__ void hc_post_kernel(bool native, kernels::HcPostArgs args) {
  const std::int64_t t = blockIdx.y;
  const std::int64_t d = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (d >= args.hidden) {
    return;
  }
  const float* post = args.post + t * kStreams;
  const float* comb = args.comb + t * kStreams * kStreams;
  float* streams = args.streams + t * kStreams * args.hidden + d;
  const float o = rounded(native, args.sublayer[t * args.hidden + d]);
  float old[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    old[i] = streams[static_cast<std::int64_t>(i) * args.hidden];
  }
  for (int j = 0; j < kStreams; ++j) {
    float sum = post[j] * o;
    for (int i = 0; i < kStreams; ++i) {
      sum += comb[i * kStreams + j] * old[i];
    }
    streams[static_cast<std::int64_t>(j) * args.hidden] = rounded(native, sum);
  }
}

void check_streams(std::int32_t hc_mult) {
  TANDEM_CHECK(hc_mult == kStreams, std::to_string(hc_mult) + " streams; kernels are made for 4");
}

float* run_mixes(const Context& context, const float* streams, const std::int32_t* rows,
                 std::int32_t n_rows, std::int64_t flat, const float* fn, std::int32_t n_mixes) {
  Scratch scratch(context);
  auto* mixes = scratch.take<float>(std::int64_t{n_rows} * (n_mixes + 1));
  launch(mixes_kernel, dim3(static_cast<unsigned>(n_mixes + 1), blocks_for(n_rows, kRowsPerBlock)),
         dim3(kThreads), 0, context.stream, streams, rows, n_rows, flat, fn, n_mixes, mixes);
  return mixes;
}

}  // namespace

void hc_pre(const Context& context, const kernels::HcPreArgs& args) {
  check_streams(args.hc_mult);
  const float* mixes = run_mixes(context, args.streams, nullptr, args.n_tokens,
                                 std::int64_t{kStreams} * args.hidden, args.fn, kMixes);
  launch(hc_pre_kernel, dim3(static_cast<unsigned>(args.n_tokens)), dim3(kThreads), 0,
         context.stream, context.native, args, mixes);
}

void hc_head(const Context& context, const kernels::HcHeadArgs& args) {
  check_streams(args.hc_mult);
  const float* mixes = run_mixes(context, args.streams, args.rows, args.n_rows,
                                 std::int64_t{kStreams} * args.hidden, args.fn, kStreams);
  launch(hc_head_kernel, dim3(static_cast<unsigned>(args.n_rows)), dim3(kThreads), 0,
         context.stream, context.native, args, mixes);
}

void hc_post(const Context& context, const kernels::HcPostArgs& args) {
  check_streams(args.hc_mult);
  launch(hc_post_kernel,
         dim3(blocks_for(args.hidden, kThreads), static_cast<unsigned>(args.n_tokens)),
         dim3(kThreads), 0, context.stream, context.native, args);
}

}  // namespace tandem::cuda
