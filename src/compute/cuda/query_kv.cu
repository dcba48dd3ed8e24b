// Query heads, the latent KV row, the raw window and the index query: one warp per row of values.
// SOURCE: model.md 2.3, 2.5, 2.8.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/row_codec.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr int kWarps = kThreads / kWarp;

// Scale of the RMS norm of a row that the warp holds.
__device__ float inverse_rms(const float (&v)[kLaneValues], float eps) {
  float sum = 0;
  for (int i = 0; i < kLaneValues; ++i) {
    sum += v[i] * v[i];
  }
  return 1.0F / sqrtf(warp_sum(sum) / static_cast<float>(tensor::kHeadDim) + eps);
}

__global__ void query_kernel(bool native, kernels::QueryArgs args) {
  const auto t = static_cast<std::int32_t>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.x) * kWarps + warp_id();
  if (head >= args.n_heads) {
    return;
  }
  float* row = args.q + (std::int64_t{t} * args.n_heads + head) * tensor::kHeadDim;
  float v[kLaneValues];
  load_row16(tensor::RowFormat::kF32, row, lane_id(), v);
  const float scale = inverse_rms(v, args.eps);
  for (float& value : v) {
    value = rounded(native, value * scale);
  }
  rotate_row16(native, place_of(args.rows, t).position, args.inv_freq, lane_id(), v);
  store_plain<kLaneValues>(tensor::RowFormat::kF32, reinterpret_cast<std::uint8_t*>(row),
                           lane_id() * kLaneValues, v);
}

__global__ void kv_kernel(bool native, kernels::KvArgs args) {
  const auto t = static_cast<std::int32_t>(blockIdx.x) * kWarps + warp_id();
  if (t >= args.rows.n_tokens) {
    return;
  }
  float* row = args.kv + std::int64_t{t} * tensor::kHeadDim;
  float v[kLaneValues];
  load_row16(tensor::RowFormat::kF32, row, lane_id(), v);
  const float scale = inverse_rms(v, args.eps);
  for (int i = 0; i < kLaneValues; ++i) {
    const float weight = tensor::bf16_to_float(args.norm[lane_id() * kLaneValues + i]);
    v[i] = rounded(native, weight * (v[i] * scale));
  }
  rotate_row16(native, place_of(args.rows, t).position, args.inv_freq, lane_id(), v);
  if (native) {
    simulate_fp8_row(lane_id(), v);
  }
  store_plain<kLaneValues>(tensor::RowFormat::kF32, reinterpret_cast<std::uint8_t*>(row),
                           lane_id() * kLaneValues, v);
}

__global__ void window_append_kernel(kernels::WindowAppendArgs args) {
  const auto t = static_cast<std::int32_t>(blockIdx.x) * kWarps + warp_id();
  if (t >= args.rows.n_tokens) {
    return;
  }
  const TokenPlace place = place_of(args.rows, t);
  // Older rows of a long segment would only be overwritten by its last ring_rows.
  if (t - place.segment.first_row < place.segment.n_rows - args.window.ring_rows) {
    return;
  }
  float v[kLaneValues];
  load_row16(tensor::RowFormat::kF32, args.kv + std::int64_t{t} * tensor::kHeadDim, lane_id(), v);
  store_row16(args.format, ring_row(args.window, place.segment.slot, place.position), lane_id(), v);
}

__global__ void index_query_kernel(bool native, kernels::IndexQueryArgs args) {
  constexpr int kValues = tensor::kIndexDim / kWarp;
  constexpr int kFirstRotated = (tensor::kIndexDim - tensor::kRopeDim) / kValues;
  const auto t = static_cast<std::int32_t>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.x) * kWarps + warp_id();
  if (head >= args.n_heads) {
    return;
  }
  float* row = args.iq + (std::int64_t{t} * args.n_heads + head) * tensor::kIndexDim;
  float v[kValues];
  for (int i = 0; i < kValues; ++i) {
    v[i] = row[lane_id() * kValues + i];
  }
  if (lane_id() >= kFirstRotated) {
    const Position position = place_of(args.rows, t).position;
    const int pair = (lane_id() - kFirstRotated) * (kValues / 2);
    for (int i = 0; i < kValues; i += 2) {
      rotate_pair(position, args.inv_freq, pair + i / 2, 1.0F, v[i], v[i + 1]);
      v[i] = rounded(native, v[i]);
      v[i + 1] = rounded(native, v[i + 1]);
    }
  }
  if (native) {
    hadamard_fp4(v);
  }
  for (int i = 0; i < kValues; ++i) {
    row[lane_id() * kValues + i] = v[i];
  }
}

dim3 heads_and_tokens(std::int32_t n_heads, std::int32_t n_tokens) {
  return dim3(blocks_for(n_heads, kWarps), static_cast<unsigned>(n_tokens));
}

}  // namespace

void query(const Context& context, const kernels::QueryArgs& args) {
  launch(query_kernel, heads_and_tokens(args.n_heads, args.rows.n_tokens), dim3(kThreads), 0,
         context.stream, context.native, args);
}

void kv(const Context& context, const kernels::KvArgs& args) {
  launch(kv_kernel, dim3(blocks_for(args.rows.n_tokens, kWarps)), dim3(kThreads), 0, context.stream,
         context.native, args);
}

void window_append(const Context& context, const kernels::WindowAppendArgs& args) {
  launch(window_append_kernel, dim3(blocks_for(args.rows.n_tokens, kWarps)), dim3(kThreads), 0,
         context.stream, args);
}

void index_query(const Context& context, const kernels::IndexQueryArgs& args) {
  launch(index_query_kernel, heads_and_tokens(args.n_heads, args.rows.n_tokens), dim3(kThreads), 0,
         context.stream, context.native, args);
}

}  // namespace tandem::cuda
