#include "compute/cpu/fast/simd_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compute/cpu/fast/simd_targets.h"
#include "compute/tensor/numeric_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/fast/simd_attention.cc"
#include <hwy/foreach_target.h>  // first: it includes this file once per target

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "compute/cpu/fast/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {

// One block of an fp8 row: 64 codes and their scale. The bits of a code moved into a float are its
// value times 2^-120; the two factors give that back without leaving the range.
HWY_INLINE void widen_fp8_block(const std::uint8_t* codes, float scale, float* out) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<std::uint8_t, FloatTag> d8;
  const auto half = hn::Set(d, 0x1.0p60F);
  const auto rest = hn::Set(d, scale * 0x1.0p60F);
  const auto keep = hn::Set(di, static_cast<std::int32_t>(0x87F00000U));
  for (std::int64_t i = 0; i < 64; i += kLanes) {
    const auto words = hn::PromoteTo(di, hn::LoadU(d8, codes + i));
    const auto bits = hn::And(hn::ShiftRight<4>(hn::ShiftLeft<24>(words)), keep);
    hn::StoreU(hn::Mul(hn::Mul(hn::BitCast(d, bits), half), rest), d, out + i);
  }
}

void load_key_simd(tensor::RowFormat format, int dim, const void* row, float* out) {
  const FloatTag d;
  const auto* bytes = static_cast<const std::uint8_t*>(row);
  switch (format) {
    case tensor::RowFormat::kF32:
      std::memcpy(out, bytes, sizeof(float) * static_cast<std::size_t>(dim));
      return;
    case tensor::RowFormat::kBf16:
      for (std::int64_t i = 0; i < dim; i += kLanes) {
        hn::StoreU(load_bf16_lanes(static_cast<const std::uint16_t*>(row) + i), d, out + i);
      }
      return;
    case tensor::RowFormat::kFp8: {
      const auto* scales = bytes + tensor::kNopeDim;
      const auto* rope = reinterpret_cast<const std::uint16_t*>(scales + 8);
      for (std::int64_t b = 0; b < tensor::kNopeDim / 64; ++b) {
        widen_fp8_block(bytes + b * 64, tensor::e8m0_to_float(scales[b]), out + b * 64);
      }
      for (std::int64_t i = 0; i < tensor::kRopeDim; i += kLanes) {
        hn::StoreU(load_bf16_lanes(rope + i), d, out + tensor::kNopeDim + i);
      }
      return;
    }
  }
}

void dot_tile_simd(const float* queries, std::int64_t n_queries, const float* keys,
                   std::int64_t n_keys, std::int64_t key_stride, std::int64_t dim, float* scores,
                   std::int64_t score_stride) {
  float acc[kTileX * kTileW * kLanes];
  for (std::int64_t j = 0; j < n_keys; j += kTileW) {
    const std::int64_t n_j = std::min<std::int64_t>(kTileW, n_keys - j);
    for (std::int64_t q = 0; q < n_queries; q += kTileX) {
      const auto n_q = static_cast<int>(std::min<std::int64_t>(kTileX, n_queries - q));
      const float* rows[kTileX];
      for (int m = 0; m < kTileX; ++m) {
        rows[m] = queries + (q + std::min(m, n_q - 1)) * dim;
      }
      std::fill_n(acc, kTileX * kTileW * kLanes, 0.0F);
      accumulate_rows(n_q, keys + j * key_stride, key_stride, rows, 0, dim, acc);
      for (int m = 0; m < n_q; ++m) {
        for (std::int64_t i = 0; i < n_j; ++i) {
          scores[(q + m) * score_stride + j + i] = lane_sum(acc + (m * kTileW + i) * kLanes);
        }
      }
    }
  }
}

float softmax_weights_simd(float* scores, std::int64_t n, float scale, float sink) {
  const FloatTag d;
  const std::int64_t padded = padded_keys(n);
  std::fill(scores + n, scores + padded, -1e30F);  // exp gives 0 and the largest is unchanged
  const auto factor = hn::Set(d, scale);
  auto largest = hn::Set(d, sink);
  for (std::int64_t i = 0; i < padded; i += kLanes) {
    largest = hn::Max(largest, hn::Mul(hn::LoadU(d, scores + i), factor));
  }
  const float m = hn::GetLane(hn::MaxOfLanes(d, largest));
  const auto offset = hn::Set(d, m);
  auto total = hn::Zero(d);
  for (std::int64_t i = 0; i < padded; i += kLanes) {
    const auto shifted = hn::Sub(hn::Mul(hn::LoadU(d, scores + i), factor), offset);
    const auto weight = hn::Exp(d, hn::Max(shifted, hn::Set(d, -1000.0F)));
    hn::StoreU(weight, d, scores + i);
    total = hn::Add(total, weight);
  }
  return 1.0F / (hn::GetLane(hn::SumOfLanes(d, total)) + std::exp(sink - m));
}

// kHeads heads, two vectors of dims: the keys' values are read once for all these heads.
template <int kHeads>
HWY_INLINE void add_values_heads(const float* weights, std::int64_t weight_stride,
                                 const float* keys, std::int64_t n_keys, std::int64_t key_stride,
                                 std::int64_t dim, float* out) {
  const FloatTag d;
  for (std::int64_t i = 0; i < dim; i += 2 * kLanes) {
    FloatVec sums[kHeads][2];
    for (int h = 0; h < kHeads; ++h) {
      sums[h][0] = hn::LoadU(d, out + h * dim + i);
      sums[h][1] = hn::LoadU(d, out + h * dim + i + kLanes);
    }
    for (std::int64_t j = 0; j < n_keys; ++j) {
      const auto v0 = hn::LoadU(d, keys + j * key_stride + i);
      const auto v1 = hn::LoadU(d, keys + j * key_stride + i + kLanes);
      for (int h = 0; h < kHeads; ++h) {
        const auto weight = hn::Set(d, weights[h * weight_stride + j]);
        sums[h][0] = hn::MulAdd(weight, v0, sums[h][0]);
        sums[h][1] = hn::MulAdd(weight, v1, sums[h][1]);
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      hn::StoreU(sums[h][0], d, out + h * dim + i);
      hn::StoreU(sums[h][1], d, out + h * dim + i + kLanes);
    }
  }
}

void add_values_simd(const float* weights, std::int64_t weight_stride, std::int64_t n_heads,
                     const float* keys, std::int64_t n_keys, std::int64_t key_stride,
                     std::int64_t dim, float* out) {
  std::int64_t h = 0;
  for (; h + 4 <= n_heads; h += 4) {
    add_values_heads<4>(weights + h * weight_stride, weight_stride, keys, n_keys, key_stride, dim,
                        out + h * dim);
  }
  for (; h < n_heads; ++h) {
    add_values_heads<1>(weights + h * weight_stride, weight_stride, keys, n_keys, key_stride, dim,
                        out + h * dim);
  }
}

void relu_sum_simd(const float* weights, std::int64_t n_heads, const float* dots,
                   std::int64_t dot_stride, std::int64_t n, float* out) {
  const FloatTag d;
  for (std::int64_t j = 0; j < n; j += kLanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t h = 0; h < n_heads; ++h) {
      const auto dot = hn::Max(hn::LoadU(d, dots + h * dot_stride + j), hn::Zero(d));
      sum = hn::MulAdd(hn::Set(d, weights[h]), dot, sum);
    }
    hn::StoreU(sum, d, out + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(load_key_simd);
HWY_EXPORT(dot_tile_simd);
HWY_EXPORT(softmax_weights_simd);
HWY_EXPORT(add_values_simd);
HWY_EXPORT(relu_sum_simd);

void load_key(tensor::RowFormat format, int dim, const void* row, float* out) {
  HWY_DYNAMIC_DISPATCH(load_key_simd)(format, dim, row, out);
}

void dot_tile(const float* queries, std::int64_t n_queries, const float* keys, std::int64_t n_keys,
              std::int64_t key_stride, std::int64_t dim, float* scores, std::int64_t score_stride) {
  HWY_DYNAMIC_DISPATCH(dot_tile_simd)
  (queries, n_queries, keys, n_keys, key_stride, dim, scores, score_stride);
}

float softmax_weights(float* scores, std::int64_t n, float scale, float sink) {
  return HWY_DYNAMIC_DISPATCH(softmax_weights_simd)(scores, n, scale, sink);
}

void add_values(const float* weights, std::int64_t weight_stride, std::int64_t n_heads,
                const float* keys, std::int64_t n_keys, std::int64_t key_stride, std::int64_t dim,
                float* out) {
  HWY_DYNAMIC_DISPATCH(add_values_simd)
  (weights, weight_stride, n_heads, keys, n_keys, key_stride, dim, out);
}

void relu_sum(const float* weights, std::int64_t n_heads, const float* dots,
              std::int64_t dot_stride, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(relu_sum_simd)(weights, n_heads, dots, dot_stride, n, out);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
