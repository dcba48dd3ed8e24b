#include "compute/cpu/fast/simd_rows.h"

#include <algorithm>
#include <cmath>

#include "compute/cpu/fast/simd_targets.h"
#include "compute/tensor/numeric_formats.h"
#include "foundation/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/fast/simd_rows.cc"
#include <hwy/foreach_target.h>  // first: it includes this file once per target

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "compute/cpu/fast/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {

// Rows here have a multiple of kLanes values, but for the widths that the model leaves open; those
// end with one vector that overlaps nothing: it is loaded and stored lane by lane.
HWY_INLINE FloatVec load_part(const float* p, std::int64_t n) {
  const FloatTag d;
  if (n >= kLanes) {
    return hn::LoadU(d, p);
  }
  float lanes[kLanes] = {};
  std::copy(p, p + n, lanes);
  return hn::LoadU(d, lanes);
}

HWY_INLINE void store_part(FloatVec v, std::int64_t n, float* p) {
  const FloatTag d;
  if (n >= kLanes) {
    hn::StoreU(v, d, p);
    return;
  }
  float lanes[kLanes];
  hn::StoreU(v, d, lanes);
  std::copy(lanes, lanes + n, p);
}

HWY_INLINE FloatVec load_bf16_part(const std::uint16_t* p, std::int64_t n) {
  if (n >= kLanes) {
    return load_bf16_lanes(p);
  }
  std::uint16_t lanes[kLanes] = {};
  std::copy(p, p + n, lanes);
  return load_bf16_lanes(lanes);
}

HWY_INLINE FloatVec maybe_round(FloatVec v, bool round) {
  return round ? round_lanes_bf16(v) : v;
}

// Nearest E4M3 value of |x| <= 448, ties to even.
HWY_INLINE FloatVec round_lanes_e4m3(FloatVec x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(du, 1U));
  const auto sum = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFFU)), odd);
  const auto normal = hn::BitCast(d, hn::And(sum, hn::Set(du, 0xFFF00000U)));
  // Below 2^-6 the step is 2^-9, which is the last place of floats near 1.5 * 2^14.
  const auto anchor = hn::Set(d, 0x1.8p14F);
  const auto subnormal = hn::Sub(hn::Add(x, anchor), anchor);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1.0p-6F)), subnormal, normal);
}

void quantise_row_simd(const float* x, std::int64_t n, std::int64_t block, float* out) {
  const FloatTag d;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t end = std::min(n, begin + block);
    auto largest = hn::Zero(d);
    for (std::int64_t i = begin; i < end; i += kLanes) {
      largest = hn::Max(largest, hn::Abs(load_part(x + i, end - i)));
    }
    const float scale = tensor::act_quant_scale(hn::GetLane(hn::MaxOfLanes(d, largest)));
    const auto multiplier = hn::Set(d, scale);
    const auto inverse = hn::Set(d, 1.0F / scale);
    const auto limit = hn::Set(d, 448.0F);
    for (std::int64_t i = begin; i < end; i += kLanes) {
      const auto y = hn::Mul(load_part(x + i, end - i), inverse);
      const auto clamped = hn::Min(hn::Max(y, hn::Neg(limit)), limit);
      store_part(hn::Mul(round_lanes_e4m3(clamped), multiplier), end - i, out + i);
    }
  }
}

void round_row_simd(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_part(round_lanes_bf16(load_part(x + i, n - i)), n - i, x + i);
  }
}

void widen_bf16_simd(const std::uint16_t* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_part(load_bf16_part(x + i, n - i), n - i, out + i);
  }
}

// Four chains, so that the sum is not bound by the latency of one.
float sum_of_squares_simd(const float* x, std::int64_t n) {
  const FloatTag d;
  FloatVec sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (std::int64_t c = 0; c < 4; ++c) {
      const auto v = hn::LoadU(d, x + i + c * kLanes);
      sums[c] = hn::MulAdd(v, v, sums[c]);
    }
  }
  for (; i < n; i += kLanes) {
    const auto v = load_part(x + i, n - i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  }
  const auto sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void scale_row_simd(const float* x, float scale, std::int64_t n, bool round, float* out) {
  const auto factor = hn::Set(FloatTag(), scale);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_part(maybe_round(hn::Mul(load_part(x + i, n - i), factor), round), n - i, out + i);
  }
}

void norm_row_simd(const float* x, const std::uint16_t* weight, std::int64_t n, float eps,
                   bool round, float* out) {
  const float mean = sum_of_squares_simd(x, n) / static_cast<float>(n);
  const auto factor = hn::Set(FloatTag(), 1.0F / std::sqrt(mean + eps));
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto v = hn::Mul(load_part(x + i, n - i), factor);
    const auto w = load_bf16_part(weight + i, n - i);
    store_part(maybe_round(hn::Mul(w, v), round), n - i, out + i);
  }
}

void weighted_sum_simd(const float* gates, const float* rows, int n_rows, std::int64_t n,
                       bool round, float* out) {
  const FloatTag d;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    auto sum = hn::Zero(d);
    for (int r = 0; r < n_rows; ++r) {
      sum = hn::MulAdd(hn::Set(d, gates[r]), load_part(rows + r * n + i, n - i), sum);
    }
    store_part(maybe_round(sum, round), n - i, out + i);
  }
}

void hc_exit_simd(const float* sublayer, const float* post, const float* comb, int n_streams,
                  std::int64_t n, bool round, float* streams) {
  const FloatTag d;
  FloatVec old[kMaxStreams];
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto o = maybe_round(load_part(sublayer + i, n - i), round);
    for (int s = 0; s < n_streams; ++s) {
      old[s] = load_part(streams + s * n + i, n - i);
    }
    for (int j = 0; j < n_streams; ++j) {
      auto sum = hn::Mul(hn::Set(d, post[j]), o);
      for (int s = 0; s < n_streams; ++s) {  // column j of comb, model.md T11
        sum = hn::MulAdd(hn::Set(d, comb[s * n_streams + j]), old[s], sum);
      }
      store_part(maybe_round(sum, round), n - i, streams + j * n + i);
    }
  }
}

void add_row_simd(const float* e, std::int64_t n, bool round, float* x) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto sum = hn::Add(load_part(x + i, n - i), load_part(e + i, n - i));
    store_part(maybe_round(sum, round), n - i, x + i);
  }
}

void swiglu_row_simd(const float* gate, const float* up, float limit, float weight, std::int64_t n,
                     bool round, float* out) {
  const FloatTag d;
  const auto top = hn::Set(d, limit);
  const auto one = hn::Set(d, 1.0F);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto g = hn::Min(maybe_round(load_part(gate + i, n - i), round), top);
    const auto u =
        hn::Max(hn::Min(maybe_round(load_part(up + i, n - i), round), top), hn::Neg(top));
    // exp(-g) of g < -100 would leave the range of hn::Exp; silu is 0 there to float precision.
    const auto e = hn::Exp(d, hn::Neg(hn::Max(g, hn::Set(d, -80.0F))));
    const auto silu = hn::Div(g, hn::Add(one, e));
    const auto t = hn::Mul(hn::Set(d, weight), hn::Mul(silu, u));
    store_part(maybe_round(t, round), n - i, out + i);
  }
}

void pool_rows_simd(const float* const* values, const float* const* logits, int n_rows,
                    std::int64_t n, bool round, float* out) {
  const FloatTag d;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    auto largest = load_part(logits[0] + i, n - i);
    for (int r = 1; r < n_rows; ++r) {
      largest = hn::Max(largest, load_part(logits[r] + i, n - i));
    }
    auto total = hn::Zero(d);
    auto sum = hn::Zero(d);
    for (int r = 0; r < n_rows; ++r) {
      const auto weight = hn::Exp(d, hn::Sub(load_part(logits[r] + i, n - i), largest));
      total = hn::Add(total, weight);
      sum = hn::MulAdd(weight, load_part(values[r] + i, n - i), sum);
    }
    store_part(maybe_round(hn::Div(sum, total), round), n - i, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(quantise_row_simd);
HWY_EXPORT(round_row_simd);
HWY_EXPORT(widen_bf16_simd);
HWY_EXPORT(sum_of_squares_simd);
HWY_EXPORT(scale_row_simd);
HWY_EXPORT(norm_row_simd);
HWY_EXPORT(weighted_sum_simd);
HWY_EXPORT(hc_exit_simd);
HWY_EXPORT(add_row_simd);
HWY_EXPORT(swiglu_row_simd);
HWY_EXPORT(pool_rows_simd);

void quantise_row(const float* x, std::int64_t n, std::int64_t block, float* out) {
  HWY_DYNAMIC_DISPATCH(quantise_row_simd)(x, n, block, out);
}

void round_row(float* x, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(round_row_simd)(x, n);
}

void widen_bf16(const std::uint16_t* x, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_bf16_simd)(x, n, out);
}

float sum_of_squares(const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares_simd)(x, n);
}

void scale_row(const float* x, float scale, std::int64_t n, bool round, float* out) {
  HWY_DYNAMIC_DISPATCH(scale_row_simd)(x, scale, n, round, out);
}

void norm_row(const float* x, const std::uint16_t* weight, std::int64_t n, float eps, bool round,
              float* out) {
  HWY_DYNAMIC_DISPATCH(norm_row_simd)(x, weight, n, eps, round, out);
}

void weighted_sum(const float* gates, const float* rows, int n_rows, std::int64_t n, bool round,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(weighted_sum_simd)(gates, rows, n_rows, n, round, out);
}

void hc_exit(const float* sublayer, const float* post, const float* comb, int n_streams,
             std::int64_t n, bool round, float* streams) {
  TANDEM_CHECK(n_streams <= kMaxStreams,
               "more residual streams than this build holds in registers");
  HWY_DYNAMIC_DISPATCH(hc_exit_simd)(sublayer, post, comb, n_streams, n, round, streams);
}

void add_row(const float* e, std::int64_t n, bool round, float* x) {
  HWY_DYNAMIC_DISPATCH(add_row_simd)(e, n, round, x);
}

void swiglu_row(const float* gate, const float* up, float limit, float weight, std::int64_t n,
                bool round, float* out) {
  HWY_DYNAMIC_DISPATCH(swiglu_row_simd)(gate, up, limit, weight, n, round, out);
}

void pool_rows(const float* const* values, const float* const* logits, int n_rows, std::int64_t n,
               bool round, float* out) {
  HWY_DYNAMIC_DISPATCH(pool_rows_simd)(values, logits, n_rows, n, round, out);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
