// Scores of all visible compressed rows and the exact choice of the best. SOURCE:
// model.md 2.7, 2.8.
//
// A block scores 64 keys for one token: keys and queries of 64 heads lie in shared memory with the
// dims outside, each thread keeps 4 x 4 products. Sums over heads are taken in a fixed order, so a
// score does not depend on what else runs.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/radix_select.h"
#include "compute/cuda/row_codec.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::IndexSelectArgs;

constexpr int kDim = tensor::kIndexDim;
constexpr int kTile = 64;          // keys, and heads, of a block's tile
constexpr int kPitch = kTile + 4;  // floats; keeps rows 16-byte aligned and off each other's banks
constexpr unsigned kScoreThreads = 256;
constexpr unsigned kSelectThreads = 512;
constexpr int kPart = 4;  // keys and heads of one thread

// Two tiles, and the heads' part sums [16][64] of every key.
constexpr std::size_t kScoreShared =
    (2 * std::size_t{kDim} * kPitch + std::size_t{kTile} / kPart * kTile) * sizeof(float);

__device__ std::int64_t visible_rows(const IndexSelectArgs& args, std::int32_t t) {
  return (place_of(args.rows, t).position + 1) / args.ratio;
}

// tile[dim][key] of keys first .. first + 63; rows past the end are zero.
__device__ void load_keys(const IndexSelectArgs& args, std::int32_t slot, std::int64_t first,
                          std::int64_t n_visible, float* tile) {
  for (int k = warp_id(); k < kTile; k += static_cast<int>(kScoreThreads / kWarp)) {
    float v[4] = {0, 0, 0, 0};
    if (first + k < n_visible) {
      load_plain<4>(args.keys.format,
                    static_cast<const std::uint8_t*>(args.keys.row(slot, first + k)), lane_id() * 4,
                    v);
    }
    for (int i = 0; i < 4; ++i) {
      tile[(lane_id() * 4 + i) * kPitch + k] = v[i];
    }
  }
}

__device__ void load_queries(const IndexSelectArgs& args, std::int32_t t, int first, float* tile) {
  for (int h = warp_id(); h < kTile; h += static_cast<int>(kScoreThreads / kWarp)) {
    const float* q = args.iq + (std::int64_t{t} * args.n_heads + first + h) * kDim;
    for (int i = 0; i < 4; ++i) {
      tile[(lane_id() * 4 + i) * kPitch + h] = first + h < args.n_heads ? q[lane_id() * 4 + i] : 0;
    }
  }
}

// Adds the weighted products of this thread's 4 heads with its 4 keys.
__device__ void add_products(const float* keys, const float* queries, const float (&weights)[kPart],
                             int key, int head, float (&sums)[kPart]) {
  float products[kPart][kPart] = {};
  for (int d = 0; d < kDim; ++d) {
    float k[kPart];
    float q[kPart];
    for (int i = 0; i < kPart; ++i) {
      k[i] = keys[d * kPitch + key + i];
      q[i] = queries[d * kPitch + head + i];
    }
    for (int i = 0; i < kPart; ++i) {
      for (int j = 0; j < kPart; ++j) {
        products[i][j] += k[i] * q[j];
      }
    }
  }
  for (int i = 0; i < kPart; ++i) {
    for (int j = 0; j < kPart; ++j) {
      // Not fmaxf: a broken key must stay NaN, or it could be chosen.
      sums[i] += weights[j] * (products[i][j] < 0 ? 0.0F : products[i][j]);
    }
  }
}

// scores[(t - first_token) * pitch + c] for the visible rows c of token t.
__global__ void score_kernel(bool native, IndexSelectArgs args, std::int32_t first_token,
                             std::int64_t pitch, float* scores) {
  TANDEM_DYNAMIC_SHARED(float, shared);
  float* keys = shared;
  float* queries = keys + kDim * kPitch;
  float* parts = queries + kDim * kPitch;  // [16][64]
  const std::int32_t t = first_token + static_cast<std::int32_t>(blockIdx.y);
  const TokenPlace place = place_of(args.rows, t);
  const std::int64_t n_visible = (place.position + 1) / args.ratio;
  if (n_visible <= args.top_k) {
    return;
  }
  const float factor = 1.0F / sqrtf(static_cast<float>(kDim) * static_cast<float>(args.n_heads));
  const int key = static_cast<int>(threadIdx.x) % (kTile / kPart) * kPart;
  const int group = static_cast<int>(threadIdx.x) / (kTile / kPart);
  const std::int64_t stride = std::int64_t{gridDim.x} * kTile;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kTile; first < n_visible; first += stride) {
    load_keys(args, place.segment.slot, first, n_visible, keys);
    float sums[kPart] = {};
    for (int h = 0; h < args.n_heads; h += kTile) {
      __syncthreads();
      load_queries(args, t, h, queries);
      __syncthreads();
      float weights[kPart];
      for (int j = 0; j < kPart; ++j) {
        const int head = h + group * kPart + j;
        weights[j] = head < args.n_heads
                         ? rounded(native, args.iw[std::int64_t{t} * args.n_heads + head] * factor)
                         : 0.0F;
      }
      add_products(keys, queries, weights, key, group * kPart, sums);
    }
    for (int i = 0; i < kPart; ++i) {
      parts[group * kTile + key + i] = sums[i];
    }
    __syncthreads();
    if (threadIdx.x < kTile && first + threadIdx.x < n_visible) {
      float score = 0;
      for (int g = 0; g < kTile / kPart; ++g) {
        score += parts[g * kTile + static_cast<int>(threadIdx.x)];
      }
      scores[blockIdx.y * pitch + first + threadIdx.x] = score;
    }
    __syncthreads();  // before the next tile's keys
  }
}

// Finds the threshold key and how many rows with exactly this key are taken.
__device__ RadixState find_threshold(const float* scores, std::int64_t n, std::int32_t top_k,
                                     std::int32_t* counts, RadixState* shared_state) {
  if (threadIdx.x == 0) {
    *shared_state = RadixState{0, 0, top_k};
  }
  for (int pass = 0; pass < 4; ++pass) {
    for (int bin = static_cast<int>(threadIdx.x); bin < kRadixBins; bin += kSelectThreads) {
      counts[bin] = 0;
    }
    __syncthreads();
    const RadixState state = *shared_state;
    for (std::int64_t c = threadIdx.x; c < n; c += kSelectThreads) {
      const std::uint32_t key = score_key(scores[c]);
      if ((key & state.mask) == state.prefix) {
        atomicAdd(&counts[(key >> radix_shift(pass)) % kRadixBins], 1);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      *shared_state = next_radix_state(state, pass, counts);
    }
    __syncthreads();
  }
  return *shared_state;
}

// Exclusive count of set flags before this thread, and the block's total.
struct Rank {
  std::int32_t before = 0;
  std::int32_t total = 0;
};

__device__ Rank rank_in_block(bool flag, std::int32_t* warp_counts) {
  const unsigned ballot = __ballot_sync(kFullWarp, flag ? 1 : 0);
  __syncthreads();
  if (lane_id() == 0) {
    warp_counts[warp_id()] = __popc(ballot);
  }
  __syncthreads();
  Rank rank;
  for (int w = 0; w < static_cast<int>(kSelectThreads / kWarp); ++w) {
    rank.before += w < warp_id() ? warp_counts[w] : 0;
    rank.total += warp_counts[w];
  }
  rank.before += __popc(ballot & ((1U << lane_id()) - 1U));
  return rank;
}

__global__ void select_kernel(IndexSelectArgs args, std::int32_t first_token, std::int64_t pitch,
                              const float* all_scores) {
  __shared__ std::int32_t counts[kRadixBins];
  __shared__ std::int32_t warp_counts[kSelectThreads / kWarp];
  __shared__ RadixState shared_state;
  const std::int32_t t = first_token + static_cast<std::int32_t>(blockIdx.x);
  const std::int64_t n = visible_rows(args, t);
  std::int32_t* selected = args.selected + std::int64_t{t} * args.top_k;
  if (n <= args.top_k) {
    for (std::int64_t c = threadIdx.x; c < n; c += kSelectThreads) {
      selected[c] = static_cast<std::int32_t>(c);
    }
    if (threadIdx.x == 0) {
      args.n_selected[t] = static_cast<std::int32_t>(n);
    }
    return;
  }
  const float* scores = all_scores + blockIdx.x * pitch;
  const RadixState threshold = find_threshold(scores, n, args.top_k, counts, &shared_state);
  std::int32_t n_above = 0;  // rows better than the threshold so far
  std::int32_t n_equal = 0;
  for (std::int64_t begin = 0; begin < n; begin += kSelectThreads) {
    const std::int64_t c = begin + threadIdx.x;
    const std::uint32_t key = c < n ? score_key(scores[c]) : 0;
    const bool above = c < n && key > threshold.prefix;
    const bool equal = c < n && key == threshold.prefix;
    const Rank of_above = rank_in_block(above, warp_counts);
    const Rank of_equal = rank_in_block(equal, warp_counts);
    const std::int32_t equal_before = n_equal + of_equal.before;
    if (above || (equal && equal_before < threshold.wanted)) {
      const std::int32_t taken = equal_before < threshold.wanted ? equal_before : threshold.wanted;
      selected[n_above + of_above.before + taken] = static_cast<std::int32_t>(c);
    }
    n_above += of_above.total;
    n_equal += of_equal.total;
  }
  if (threadIdx.x == 0) {
    args.n_selected[t] = args.top_k;
  }
}

// The page table may name far more rows than there are: blocks go on to their next tile, and there
// are only as many as fill a GPU.
unsigned score_blocks(std::int64_t most_rows, unsigned n_tokens) {
  constexpr unsigned kEnough = 2048;
  constexpr unsigned kFewest = 16;
  const unsigned tiles = blocks_for(most_rows, kTile);
  const unsigned share = kEnough / n_tokens > kFewest ? kEnough / n_tokens : kFewest;
  return tiles < share ? tiles : share;
}

}  // namespace

void index_select(const Context& context, const IndexSelectArgs& args) {
  // No token of a step sees more rows than the page table can name.
  const std::int64_t pitch = args.keys.max_pages * args.keys.rows_per_page;
  Scratch scratch(context);
  const std::int32_t n_tokens = args.rows.n_tokens;
  const std::int32_t per_pass =
      rows_per_pass(scratch, pitch * static_cast<std::int64_t>(sizeof(float)), n_tokens);
  auto* scores = scratch.take<float>(per_pass * pitch);
  for (std::int32_t first = 0; first < n_tokens; first += per_pass) {
    const auto n = static_cast<unsigned>(per_pass < n_tokens - first ? per_pass : n_tokens - first);
    launch(score_kernel, dim3(score_blocks(pitch, n), n), dim3(kScoreThreads), kScoreShared,
           context.stream, context.native, args, first, pitch, scores);
    launch(select_kernel, dim3(n), dim3(kSelectThreads), 0, context.stream, args, first, pitch,
           static_cast<const float*>(scores));
  }
}

}  // namespace tandem::cuda
