// Attention of every head over one shared latent row per key. SOURCE: model.md 2.5, 2.7, 2.9,
// 2.15 (c), traps T5, T8.
//
// The keys of a query (raw window, then compressed rows) are cut into spans of kSpan. One block
// takes one span for 8 heads, one warp per head: a tile of rows is decoded once into shared memory,
// then each warp goes over it key by key with a running maximum. A second kernel joins the spans in
// order. The cut depends on the query alone, so a row's result does not depend on its neighbours.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/row_codec.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::AttentionArgs;
using tensor::kHeadDim;

constexpr int kSpan = 256;
constexpr int kTileKeys = 16;
constexpr int kHeadsPerBlock = 8;
constexpr unsigned kThreads = kHeadsPerBlock * kWarp;
constexpr int kPartFloats = kHeadDim + 2;  // weighted sum, maximum, total

// Where the keys of one query lie.
struct KeyList {
  kernels::Segment segment;
  std::int64_t t = 0;
  Position first_raw = 0;
  std::int64_t n_raw = 0;
  std::int64_t n = 0;  // raw and compressed
};

__device__ KeyList keys_of(const AttentionArgs& args, std::int32_t t) {
  const TokenPlace place = place_of(args.rows, t);
  KeyList list;
  list.segment = place.segment;
  list.t = t;
  const Position last =
      args.block_draft ? place.segment.first_position + place.segment.n_rows - 1 : place.position;
  const Position first = (args.block_draft ? place.segment.first_position : place.position + 1) -
                         tensor::kWindowTokens;
  list.first_raw = first > 0 ? first : 0;
  list.n_raw = last - list.first_raw + 1;
  list.n = list.n_raw;
  if (args.ratio != 0) {
    list.n += args.selected != nullptr ? args.n_selected[t] : (place.position + 1) / args.ratio;
  }
  return list;
}

// This lane's 16 values of key j.
__device__ void load_key(const AttentionArgs& args, const KeyList& list, std::int64_t j,
                         float (&v)[kLaneValues]) {
  const kernels::Segment& segment = list.segment;
  if (j >= list.n_raw) {
    const std::int64_t i = j - list.n_raw;
    const std::int64_t c = args.selected != nullptr ? args.selected[list.t * args.top_k + i] : i;
    load_row16(args.compressed.format, args.compressed.row(segment.slot, c), lane_id(), v);
    return;
  }
  const Position p = list.first_raw + j;
  if (p >= segment.first_position) {
    const float* row = args.kv + (segment.first_row + (p - segment.first_position)) * kHeadDim;
    load_row16(tensor::RowFormat::kF32, row, lane_id(), v);
  } else {
    load_row16(args.window_format, ring_row(args.window, segment.slot, p), lane_id(), v);
  }
}

// A lane of the attending warp holds dims j * 128 + lane * 4 + {0..3}: its reads of shared memory
// then touch every bank once.
__device__ int lane_dim(int i) {
  return i / 4 * 128 + lane_id() * 4 + i % 4;
}

// Softmax over the keys seen so far, of one head.
struct Running {
  float sum[kLaneValues] = {};
  float largest = -INFINITY;
  float total = 0;
};

__device__ void add_key(const float* key, const float (&q)[kLaneValues], Running& state) {
  float v[kLaneValues];
  float dot = 0;
  for (int i = 0; i < kLaneValues; ++i) {
    v[i] = key[lane_dim(i)];
    dot += q[i] * v[i];
  }
  const float logit = warp_sum(dot) * (1.0F / sqrtf(static_cast<float>(kHeadDim)));
  const float largest = fmaxf(state.largest, logit);
  const float keep = expf(state.largest - largest);
  const float weight = expf(logit - largest);
  for (int i = 0; i < kLaneValues; ++i) {
    state.sum[i] = state.sum[i] * keep + weight * v[i];
  }
  state.total = state.total * keep + weight;
  state.largest = largest;
}

__device__ float* part_of(float* parts, std::int64_t token, std::int32_t n_heads, int head,
                          int n_spans, int span) {
  return parts + ((token * n_heads + head) * n_spans + span) * kPartFloats;
}

__global__ void span_kernel(AttentionArgs args, std::int32_t first_token, float* parts) {
  TANDEM_DYNAMIC_SHARED(float, tile);  // [kTileKeys][512]
  const auto span = static_cast<int>(blockIdx.x);
  const std::int32_t t = first_token + static_cast<std::int32_t>(blockIdx.z);
  const int head = static_cast<int>(blockIdx.y) * kHeadsPerBlock + warp_id();
  const KeyList list = keys_of(args, t);
  const std::int64_t begin = std::int64_t{span} * kSpan;
  if (begin >= list.n) {
    return;
  }
  const std::int64_t end = begin + kSpan < list.n ? begin + kSpan : list.n;
  const bool active = head < args.n_heads;
  float q[kLaneValues] = {};
  for (int i = 0; i < kLaneValues && active; ++i) {
    q[i] = args.q[(std::int64_t{t} * args.n_heads + head) * kHeadDim + lane_dim(i)];
  }
  Running state;
  for (std::int64_t base = begin; base < end; base += kTileKeys) {
    const int n = static_cast<int>(kTileKeys < end - base ? kTileKeys : end - base);
    __syncthreads();
    for (int k = warp_id(); k < n; k += kHeadsPerBlock) {
      float v[kLaneValues];
      load_key(args, list, base + k, v);
      for (int i = 0; i < kLaneValues; ++i) {
        tile[k * kHeadDim + lane_id() * kLaneValues + i] = v[i];
      }
    }
    __syncthreads();
    for (int k = 0; k < n && active; ++k) {
      add_key(tile + k * kHeadDim, q, state);
    }
  }
  if (!active) {
    return;
  }
  float* part = part_of(parts, blockIdx.z, args.n_heads, head, static_cast<int>(gridDim.x), span);
  for (int i = 0; i < kLaneValues; ++i) {
    part[lane_dim(i)] = state.sum[i];
  }
  if (lane_id() == 0) {
    part[kHeadDim] = state.largest;
    part[kHeadDim + 1] = state.total;
  }
}

// Joins the spans with the sink, which has a weight and no value (T8), rounds and turns back.
__global__ void join_kernel(bool native, AttentionArgs args, std::int32_t first_token, int n_spans,
                            float* parts) {
  const std::int32_t t = first_token + static_cast<std::int32_t>(blockIdx.y);
  const int head = static_cast<int>(blockIdx.x) * kHeadsPerBlock + warp_id();
  if (head >= args.n_heads) {
    return;
  }
  const KeyList list = keys_of(args, t);
  const int n = static_cast<int>((list.n + kSpan - 1) / kSpan);
  const float sink = args.sink[head];
  float largest = sink;
  for (int span = 0; span < n; ++span) {
    largest =
        fmaxf(largest, part_of(parts, blockIdx.y, args.n_heads, head, n_spans, span)[kHeadDim]);
  }
  float total = expf(sink - largest);
  float v[kLaneValues] = {};
  for (int span = 0; span < n; ++span) {
    const float* part = part_of(parts, blockIdx.y, args.n_heads, head, n_spans, span);
    const float weight = expf(part[kHeadDim] - largest);
    total += weight * part[kHeadDim + 1];
    for (int i = 0; i < kLaneValues; ++i) {
      v[i] += weight * part[lane_id() * kLaneValues + i];
    }
  }
  const Position position = place_of(args.rows, t).position;
  for (int i = 0; i < kLaneValues; i += 2) {
    v[i] = rounded(native, v[i] / total);
    v[i + 1] = rounded(native, v[i + 1] / total);
    if (lane_id() >= kRopeLane) {
      const int pair = (lane_id() - kRopeLane) * (kLaneValues / 2) + i / 2;
      rotate_pair(position, args.inv_freq, pair, -1.0F, v[i], v[i + 1]);
      v[i] = rounded(native, v[i]);
      v[i + 1] = rounded(native, v[i + 1]);
    }
  }
  float* out = args.out + (std::int64_t{t} * args.n_heads + head) * kHeadDim;
  store_plain<kLaneValues>(tensor::RowFormat::kF32, reinterpret_cast<std::uint8_t*>(out),
                           lane_id() * kLaneValues, v);
}

// Most keys that a query of this step can have.
std::int64_t most_keys(const AttentionArgs& args) {
  std::int64_t n = tensor::kWindowTokens + (args.block_draft ? args.rows.n_tokens : 0);
  if (args.ratio != 0) {
    n += args.selected != nullptr ? args.top_k
                                  : args.compressed.max_pages * args.compressed.rows_per_page;
  }
  return n;
}

}  // namespace

void attention(const Context& context, const AttentionArgs& args) {
  const auto n_spans = static_cast<std::int32_t>(blocks_for(most_keys(args), kSpan));
  const std::int64_t floats_per_token = std::int64_t{args.n_heads} * n_spans * kPartFloats;
  Scratch scratch(context);
  const std::int32_t n_tokens = args.rows.n_tokens;
  const std::int32_t per_pass =
      rows_per_pass(scratch, floats_per_token * static_cast<std::int64_t>(sizeof(float)), n_tokens);
  auto* parts = scratch.take<float>(per_pass * floats_per_token);
  const unsigned groups = blocks_for(args.n_heads, kHeadsPerBlock);
  for (std::int32_t first = 0; first < n_tokens; first += per_pass) {
    const auto n = static_cast<unsigned>(per_pass < n_tokens - first ? per_pass : n_tokens - first);
    launch(span_kernel, dim3(static_cast<unsigned>(n_spans), groups, n), dim3(kThreads),
           kTileKeys * kHeadDim * sizeof(float), context.stream, args, first, parts);
    launch(join_kernel, dim3(groups, n), dim3(kThreads), 0, context.stream, context.native, args,
           first, static_cast<int>(n_spans), parts);
  }
}

}  // namespace tandem::cuda
