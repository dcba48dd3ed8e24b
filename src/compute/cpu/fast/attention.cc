// Attention: one work item is one token and a few heads. Keys are widened tile by tile, once for
// the scores and once for the values; every head's sums run over the keys in their order.
// model.md 2.9.
#include <algorithm>
#include <cmath>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/simd_attention.h"
#include "compute/cpu/fast/simd_rows.h"

namespace tandem::cpu::fast {
namespace {

using kernels::AttentionArgs;
using kernels::Segment;
using tensor::kHeadDim;
using tensor::kNopeDim;
using tensor::kRopeDim;

constexpr std::int64_t kKeyStride = kHeadDim + kKeyPad;

// The keys of one token: raw rows of positions first_raw.. , then compressed rows.
class KeySet {
 public:
  KeySet(const AttentionArgs& args, std::int64_t t)
      : args_(args), segment_(segment_of(args.rows, t)) {
    const Position p = segment_.first_position + (t - segment_.first_row);
    const Position last = args.block_draft ? segment_.first_position + segment_.n_rows - 1 : p;
    const Position first =
        (args.block_draft ? segment_.first_position : p + 1) - tensor::kWindowTokens;
    first_raw_ = std::max(Position{0}, first);
    n_raw_ = last + 1 - first_raw_;
    if (args.ratio > 0 && args.selected != nullptr) {
      selected_ = args.selected + t * args.top_k;
      n_compressed_ = args.n_selected[t];
    } else if (args.ratio > 0) {
      n_compressed_ = (p + 1) / args.ratio;
    }
  }

  std::int64_t size() const { return n_raw_ + n_compressed_; }

  // Key number i as floats.
  void load(std::int64_t i, float* out) const {
    if (i >= n_raw_) {
      const std::int64_t c = selected_ != nullptr ? selected_[i - n_raw_] : i - n_raw_;
      load_key(args_.compressed.format, kHeadDim, args_.compressed.row(segment_.slot, c), out);
      return;
    }
    const Position p = first_raw_ + i;
    if (p < segment_.first_position) {
      load_key(args_.window_format, kHeadDim, ring_row(args_.window, segment_.slot, p), out);
      return;
    }
    const float* row = args_.kv + (segment_.first_row + (p - segment_.first_position)) * kHeadDim;
    std::copy(row, row + kHeadDim, out);
  }

 private:
  const AttentionArgs& args_;
  const Segment& segment_;
  Position first_raw_ = 0;
  std::int64_t n_raw_ = 0;
  std::int64_t n_compressed_ = 0;
  const std::int32_t* selected_ = nullptr;
};

void load_tile(const KeySet& keys, std::int64_t first, std::int64_t n, float* tile) {
  for (std::int64_t i = 0; i < n; ++i) {
    keys.load(first + i, tile + i * kKeyStride);
  }
}

// Heads first_head .. first_head+n_heads-1 of token t.
void attend(const AttentionArgs& args, std::int64_t t, std::int64_t first_head,
            std::int64_t n_heads, ThreadScratch& scratch) {
  const KeySet keys(args, t);
  const std::int64_t n_keys = keys.size();
  const std::int64_t stride = padded_keys(n_keys);
  const std::int64_t offset = (t * args.n_heads + first_head) * kHeadDim;
  float* tile = scratch.first.floats(kKeyTile * kKeyStride);
  float* scores = scratch.second.floats(n_heads * stride);
  float* out = args.out + offset;
  for (std::int64_t j = 0; j < n_keys; j += kKeyTile) {
    const std::int64_t n = std::min(kKeyTile, n_keys - j);
    load_tile(keys, j, n, tile);
    dot_tile(args.q + offset, n_heads, tile, n, kKeyStride, kHeadDim, scores + j, stride);
  }
  float* inverse = scratch.third.floats(n_heads);
  const float scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));
  for (std::int64_t h = 0; h < n_heads; ++h) {
    inverse[h] = softmax_weights(scores + h * stride, n_keys, scale, args.sink[first_head + h]);
  }
  std::fill_n(out, n_heads * kHeadDim, 0.0F);
  for (std::int64_t j = 0; j < n_keys; j += kKeyTile) {
    const std::int64_t n = std::min(kKeyTile, n_keys - j);
    if (n_keys > kKeyTile) {
      load_tile(keys, j, n, tile);
    }
    add_values(scores + j, stride, n_heads, tile, n, kKeyStride, kHeadDim, out);
  }
  for (std::int64_t h = 0; h < n_heads; ++h) {
    scale_row(out + h * kHeadDim, inverse[h], kHeadDim, false, out + h * kHeadDim);
  }
}

void finish_heads(const Rotation& back, bool native, std::int64_t n_heads, float* out) {
  for (std::int64_t h = 0; h < n_heads; ++h) {
    float* head = out + h * kHeadDim;
    if (native) {
      round_row(head, kHeadDim);
    }
    rotate(back, head + kNopeDim);
    if (native) {
      round_row(head + kNopeDim, kRopeDim);
    }
  }
}

// More heads per item share the widening of the keys; fewer give every thread something to do.
std::int64_t heads_per_item(const Context& context, std::int64_t n_tokens, std::int64_t n_heads) {
  const std::int64_t n_threads = context.pool.n_threads();
  for (const std::int64_t heads : {16, 8}) {
    if (n_tokens * (n_heads / heads) >= 4 * n_threads) {
      return heads;
    }
  }
  return 4;
}

}  // namespace

void attention(Context& context, const AttentionArgs& args) {
  const std::int64_t heads = heads_per_item(context, args.rows.n_tokens, args.n_heads);
  const std::int64_t n_groups = (args.n_heads + heads - 1) / heads;
  context.for_each(
      args.rows.n_tokens * n_groups, 64 * kHeadDim * heads, [&](std::int64_t item, int thread) {
        const std::int64_t t = item / n_groups;
        const std::int64_t first = item % n_groups * heads;
        const std::int64_t n = std::min<std::int64_t>(heads, args.n_heads - first);
        attend(args, t, first, n, context.scratch(thread));
        const Segment& segment = segment_of(args.rows, t);
        const Rotation back = rotation_at(segment.first_position + (t - segment.first_row),
                                          args.inv_freq, Turn::kInverse);
        finish_heads(back, context.native(), n, args.out + (t * args.n_heads + first) * kHeadDim);
      });
}

}  // namespace tandem::cpu::fast
