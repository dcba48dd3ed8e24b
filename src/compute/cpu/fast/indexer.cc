// Index queries, and the choice of compressed rows: scores in parallel over (token, run of keys),
// then an exact top-k per token. model.md 2.7, 2.8.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/simd_attention.h"
#include "compute/cpu/fast/simd_rows.h"
#include "compute/cpu/fast/top_k.h"

namespace tandem::cpu::fast {
namespace {

using kernels::IndexSelectArgs;
using kernels::Segment;
using tensor::kIndexDim;
using tensor::kRopeDim;

constexpr std::int64_t kKeyStride = kIndexDim + kKeyPad;
constexpr std::int64_t kKeysPerItem = 10 * kKeyTile;
constexpr std::int64_t kMaxScores = std::int64_t{4} << 20;  // floats held at once

std::int64_t visible_rows(const IndexSelectArgs& args, std::int64_t t) {
  const Segment& segment = segment_of(args.rows, t);
  return (segment.first_position + (t - segment.first_row) + 1) / args.ratio;
}

// Scores of keys first .. first+n-1 for token t.
void score_keys(const Context& context, const IndexSelectArgs& args, std::int64_t t,
                std::int64_t first, std::int64_t n, float* scores, ThreadScratch& scratch) {
  const std::int32_t slot = segment_of(args.rows, t).slot;
  float* tile = scratch.first.floats(kKeyTile * kKeyStride);
  float* dots = scratch.second.floats(args.n_heads * kKeyTile);
  float* weights = scratch.third.floats(args.n_heads);
  const auto factor =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(kIndexDim) * args.n_heads));
  scale_row(args.iw + t * args.n_heads, factor, args.n_heads, context.native(), weights);
  for (std::int64_t j = 0; j < n; j += kKeyTile) {
    const std::int64_t n_tile = std::min(kKeyTile, n - j);
    for (std::int64_t i = 0; i < n_tile; ++i) {
      load_key(args.keys.format, kIndexDim, args.keys.row(slot, first + j + i),
               tile + i * kKeyStride);
    }
    dot_tile(args.iq + t * args.n_heads * kIndexDim, args.n_heads, tile, n_tile, kKeyStride,
             kIndexDim, dots, kKeyTile);
    relu_sum(weights, args.n_heads, dots, kKeyTile, n_tile, scores + j);
  }
}

// Tokens first .. first+n-1; `widest` is the largest number of visible rows among all tokens.
void select_tokens(Context& context, const IndexSelectArgs& args, std::int64_t first,
                   std::int64_t n, std::int64_t widest) {
  const std::int64_t stride = padded_keys(widest);
  float* scores = context.results.floats(n * stride);
  const std::int64_t n_runs = (widest + kKeysPerItem - 1) / kKeysPerItem;
  const std::int64_t work = kKeysPerItem * args.n_heads * kIndexDim;
  context.for_each(n * n_runs, work, [&](std::int64_t item, int thread) {
    const std::int64_t t = first + item / n_runs;
    const std::int64_t key = item % n_runs * kKeysPerItem;
    const std::int64_t n_visible = visible_rows(args, t);
    if (n_visible > args.top_k && key < n_visible) {
      score_keys(context, args, t, key, std::min(kKeysPerItem, n_visible - key),
                 scores + (t - first) * stride + key, context.scratch(thread));
    }
  });
  context.for_each(n, 8 * widest, [&](std::int64_t i, int) {
    const std::int64_t t = first + i;
    const std::int64_t n_visible = visible_rows(args, t);
    std::int32_t* selected = args.selected + t * args.top_k;
    if (n_visible > args.top_k) {
      select_top_k(scores + i * stride, n_visible, args.top_k, selected);
    } else {
      std::iota(selected, selected + n_visible, 0);
    }
    args.n_selected[t] = static_cast<std::int32_t>(std::min<std::int64_t>(n_visible, args.top_k));
  });
}

}  // namespace

void index_query(Context& context, const kernels::IndexQueryArgs& args) {
  context.for_each(args.rows.n_tokens, 40 * kIndexDim * args.n_heads, [&](std::int64_t t, int) {
    const Segment& segment = segment_of(args.rows, t);
    const Rotation rotation = rotation_at(segment.first_position + (t - segment.first_row),
                                          args.inv_freq, Turn::kForward);
    for (std::int64_t h = 0; h < args.n_heads; ++h) {
      float* q = args.iq + (t * args.n_heads + h) * kIndexDim;
      rotate(rotation, q + kIndexDim - kRopeDim);
      if (context.native()) {
        round_row(q + kIndexDim - kRopeDim, kRopeDim);
        hadamard_128(q);
        fp4_sim_32(q, kIndexDim);
      }
    }
  });
}

void index_select(Context& context, const IndexSelectArgs& args) {
  std::int64_t widest = 0;
  for (std::int64_t t = 0; t < args.rows.n_tokens; ++t) {
    widest = std::max(widest, visible_rows(args, t));
  }
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kMaxScores / std::max<std::int64_t>(1, widest));
  for (std::int64_t t = 0; t < args.rows.n_tokens; t += at_once) {
    select_tokens(context, args, t, std::min<std::int64_t>(at_once, args.rows.n_tokens - t),
                  widest);
  }
}

}  // namespace tandem::cpu::fast
