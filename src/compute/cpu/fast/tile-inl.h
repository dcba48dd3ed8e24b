// The inner loop of every dense product here: rows of x against three rows of w, summed lane by
// lane over k. Each (x row, w row) pair has its own accumulator vector, so its sum does not depend
// on which rows are computed beside it.
// Included once per SIMD target; see Highway's README for the pattern.
#if defined(TANDEM_CPU_FAST_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_CPU_FAST_TILE_INL_H_
#undef TANDEM_CPU_FAST_TILE_INL_H_
#else
#define TANDEM_CPU_FAST_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 8>;
using FloatVec = hn::Vec<FloatTag>;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(FloatTag()));

constexpr int kTileW = 3;  // with 4 rows of x: 12 accumulators of 16 registers
constexpr int kTileX = 4;

// acc[m][j] += x[m][offset + k] * w[j][k] over the vectors k = 0, step, 2 step .. below n, lanes
// kept apart. acc is [kX, kTileW, kLanes].
template <int kX>
HWY_INLINE void accumulate_tile(const float* HWY_RESTRICT w, std::int64_t w_stride,
                                const float* const* x, std::int64_t offset, std::int64_t n,
                                float* HWY_RESTRICT acc) {
  const FloatTag d;
  FloatVec sum[kX][kTileW];
  const float* rows[kX];
  for (int m = 0; m < kX; ++m) {
    rows[m] = x[m] + offset;
    for (int j = 0; j < kTileW; ++j) {
      sum[m][j] = hn::LoadU(d, acc + (m * kTileW + j) * kLanes);
    }
  }
  for (std::int64_t k = 0; k < n; k += kLanes) {
    const FloatVec w0 = hn::LoadU(d, w + k);
    const FloatVec w1 = hn::LoadU(d, w + w_stride + k);
    const FloatVec w2 = hn::LoadU(d, w + 2 * w_stride + k);
    for (int m = 0; m < kX; ++m) {
      const FloatVec xv = hn::LoadU(d, rows[m] + k);
      sum[m][0] = hn::MulAdd(w0, xv, sum[m][0]);
      sum[m][1] = hn::MulAdd(w1, xv, sum[m][1]);
      sum[m][2] = hn::MulAdd(w2, xv, sum[m][2]);
    }
  }
  for (int m = 0; m < kX; ++m) {
    for (int j = 0; j < kTileW; ++j) {
      hn::StoreU(sum[m][j], d, acc + (m * kTileW + j) * kLanes);
    }
  }
}

HWY_INLINE void accumulate_rows(int n_x, const float* HWY_RESTRICT w, std::int64_t w_stride,
                                const float* const* x, std::int64_t offset, std::int64_t n,
                                float* HWY_RESTRICT acc) {
  switch (n_x) {
    case 1:
      return accumulate_tile<1>(w, w_stride, x, offset, n, acc);
    case 2:
      return accumulate_tile<2>(w, w_stride, x, offset, n, acc);
    case 3:
      return accumulate_tile<3>(w, w_stride, x, offset, n, acc);
    default:
      return accumulate_tile<4>(w, w_stride, x, offset, n, acc);
  }
}

// Sum over the lanes of one accumulator.
HWY_INLINE float lane_sum(const float* acc) {
  const FloatTag d;
  return hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, acc)));
}

// Rounds every lane to the nearest bf16 value, ties to even. NaN stays NaN.
HWY_INLINE FloatVec round_lanes_bf16(FloatVec x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto sum = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFU)), odd);
  const auto rounded = hn::BitCast(d, hn::And(sum, hn::Set(du, 0xFFFF0000U)));
  return hn::IfThenElse(hn::Eq(x, x), rounded, x);
}

// kLanes bf16 values as floats.
HWY_INLINE FloatVec load_bf16_lanes(const std::uint16_t* p) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const hn::Rebind<std::uint16_t, FloatTag> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, p))));
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#endif  // TANDEM_CPU_FAST_TILE_INL_H_
