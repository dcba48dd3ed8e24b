// Attention of every head over one shared latent row per key. SOURCE: model.md 2.5, 2.7, 2.9,
// 2.15 (c), traps T5, T8.
#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {
namespace {

using kernels::AttentionArgs;
using kernels::Segment;
using tensor::kHeadDim;
using tensor::kNopeDim;
using tensor::kRopeDim;
using tensor::kWindowTokens;

using Key = std::vector<float>;

// Raw rows first_position.. come from this step, older ones from the ring.
Key raw_row(const AttentionArgs& args, const Segment& segment, Position p) {
  Key key(kHeadDim);
  if (p >= segment.first_position) {
    const float* row = args.kv + (segment.first_row + (p - segment.first_position)) * kHeadDim;
    std::copy(row, row + kHeadDim, key.begin());
  } else {
    load_row(args.window_format, kHeadDim, ring_row(args.window, segment.slot, p), key.data());
  }
  return key;
}

void add_raw_keys(const AttentionArgs& args, const Segment& segment, Position p,
                  std::vector<Key>& keys) {
  const Position last = args.block_draft ? segment.first_position + segment.n_rows - 1 : p;
  const Position first = (args.block_draft ? segment.first_position : p + 1) - kWindowTokens;
  for (Position j = std::max(Position{0}, first); j <= last; ++j) {
    keys.push_back(raw_row(args, segment, j));
  }
}

void add_compressed_keys(const AttentionArgs& args, std::int32_t slot, std::int64_t t, Position p,
                         std::vector<Key>& keys) {
  if (args.ratio == 0) {
    return;
  }
  const std::int64_t n = args.selected != nullptr ? args.n_selected[t] : (p + 1) / args.ratio;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t c = args.selected != nullptr ? args.selected[t * args.top_k + i] : i;
    Key key(kHeadDim);
    load_row(args.compressed.format, kHeadDim, args.compressed.row(slot, c), key.data());
    keys.push_back(std::move(key));
  }
}

// One head: softmax over the keys with the sink in the denominator only.
void attend(Numerics numerics, const std::vector<Key>& keys, const float* q, float sink,
            float* out) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(kHeadDim));
  std::vector<double> weights;
  auto largest = static_cast<double>(sink);
  for (const Key& key : keys) {
    weights.push_back(dot(q, key.data(), kHeadDim) * scale);
    largest = std::max(largest, weights.back());
  }
  double total = std::exp(static_cast<double>(sink) - largest);
  for (double& weight : weights) {
    weight = std::exp(weight - largest);
    total += weight;
  }
  std::vector<double> sum(kHeadDim, 0.0);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      sum[d] += weights[j] * static_cast<double>(keys[j][d]);
    }
  }
  for (std::size_t d = 0; d < kHeadDim; ++d) {
    out[d] = rounded(numerics, sum[d] / total);
  }
}

}  // namespace

void attention(Numerics numerics, const AttentionArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      const std::int64_t t = segment.first_row + i;
      const Position p = segment.first_position + i;
      std::vector<Key> keys;
      add_raw_keys(args, segment, p, keys);
      add_compressed_keys(args, segment.slot, t, p, keys);
      const Rotation back = rotation_at(p, args.inv_freq, Turn::kInverse);
      for (std::int64_t h = 0; h < args.n_heads; ++h) {
        const std::int64_t offset = (t * args.n_heads + h) * kHeadDim;
        attend(numerics, keys, args.q + offset, args.sink[h], args.out + offset);
        rotate(back, args.out + offset + kNopeDim);
        if (numerics == Numerics::kNative) {
          round_bf16_row(args.out + offset + kNopeDim, kRopeDim);
        }
      }
    }
  }
}

}  // namespace tandem::cpu::reference
