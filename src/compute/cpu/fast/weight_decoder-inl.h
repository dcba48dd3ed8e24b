// Decoders of packed weights: one chunk of a row at a time, from memory to float vectors in
// registers. Chunk layouts are those of pack_order(). SOURCE: model.md 2.0 formats and packing.
// Included once per SIMD target.
#if defined(TANDEM_CPU_FAST_WEIGHT_DECODER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_CPU_FAST_WEIGHT_DECODER_INL_H_
#undef TANDEM_CPU_FAST_WEIGHT_DECODER_INL_H_
#else
#define TANDEM_CPU_FAST_WEIGHT_DECODER_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "compute/cpu/fast/fp4_table.h"
#include "compute/cpu/fast/tile-inl.h"
#include "compute/tensor/weight_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {

using tensor::WeightFormat;
using tensor::WeightMatrix;
using WordTag = hn::RebindToUnsigned<FloatTag>;
using ByteTag = hn::Repartition<std::uint8_t, FloatTag>;
using ByteVec = hn::Vec<ByteTag>;

// Decoder<F>: kVectors float vectors per chunk, kBytes bytes per chunk, and
//   start_group(c): called before chunk c, which begins a group of kGroup chunks;
//   start_rest(c): called instead for a last chunk that is not whole;
//   decode(bytes, c, out): chunk number c of the row, whose bytes lie at `bytes`.
// Sums of products must be multiplied by post_scale().
template <WeightFormat kFormat>
struct Decoder;

template <>
struct Decoder<WeightFormat::kF32> {
  static constexpr int kVectors = 1;
  static constexpr std::int64_t kBytes = 4 * kLanes;
  static constexpr std::int64_t kGroup = 1;
  static constexpr float post_scale() { return 1.0F; }

  Decoder(const WeightMatrix& w, std::int64_t row)
      : data(static_cast<const std::uint8_t*>(w.data) + row * w.cols * 4) {}

  HWY_INLINE void start_group(std::int64_t /*c*/) {}

  HWY_INLINE void start_rest(std::int64_t /*c*/) {}

  HWY_INLINE void decode(const std::uint8_t* bytes, std::int64_t /*c*/, FloatVec* out) const {
    const ByteTag d8;
    out[0] = hn::BitCast(FloatTag(), hn::LoadU(d8, bytes));
  }

  const std::uint8_t* data;
};

template <>
struct Decoder<WeightFormat::kBf16> {
  static constexpr int kVectors = 2;
  static constexpr std::int64_t kBytes = 4 * kLanes;
  static constexpr std::int64_t kGroup = 1;
  static constexpr float post_scale() { return 1.0F; }

  Decoder(const WeightMatrix& w, std::int64_t row)
      : data(static_cast<const std::uint8_t*>(w.data) + row * w.cols * 2) {}

  // A 32-bit word holds an even column (low half) and an odd one (high half).
  HWY_INLINE void start_group(std::int64_t /*c*/) {}

  HWY_INLINE void start_rest(std::int64_t /*c*/) {}

  HWY_INLINE void decode(const std::uint8_t* bytes, std::int64_t /*c*/, FloatVec* out) const {
    const FloatTag d;
    const WordTag dw;
    const ByteTag d8;
    const auto words = hn::BitCast(dw, hn::LoadU(d8, bytes));
    out[0] = hn::BitCast(d, hn::ShiftLeft<16>(words));
    out[1] = hn::BitCast(d, hn::And(words, hn::Set(dw, 0xFFFF0000U)));
  }

  const std::uint8_t* data;
};

// E4M3 bits moved into a float's sign, exponent and mantissa give the value times 2^-120, also for
// subnormals and zero. Half of the missing factor goes into the block scale, half into post_scale,
// so that neither overflows. Subnormal codes cost some processors extra cycles here; in trained
// weights, quantised to the largest of 16384 values, they are about one in a thousand.
template <>
struct Decoder<WeightFormat::kFp8> {
  static constexpr int kVectors = 4;
  static constexpr std::int64_t kBytes = 4 * kLanes;
  static constexpr std::int64_t kGroup = 128 / kBytes;
  static constexpr int kHalfShift = 60;
  static constexpr float post_scale() { return 0x1.0p60F; }

  Decoder(const WeightMatrix& w, std::int64_t row)
      : data(static_cast<const std::uint8_t*>(w.data) + row * w.cols),
        scales(w.scales + (row / 128) * ((w.cols + 127) / 128)) {}

  HWY_INLINE void start_group(std::int64_t c) {
    const WordTag dw;
    const std::uint32_t exponent = scales[c / kGroup] + std::uint32_t{kHalfShift};
    scale = hn::BitCast(FloatTag(), hn::Set(dw, std::min<std::uint32_t>(exponent, 254U) << 23));
  }

  HWY_INLINE void start_rest(std::int64_t c) { start_group(c / kGroup * kGroup); }

  HWY_INLINE void decode(const std::uint8_t* bytes, std::int64_t /*c*/, FloatVec* out) const {
    const FloatTag d;
    const WordTag dw;
    const hn::RebindToSigned<FloatTag> di;
    const ByteTag d8;
    const auto words = hn::BitCast(dw, hn::LoadU(d8, bytes));
    const auto keep = hn::Set(di, static_cast<std::int32_t>(0x87F00000U));
    // The arithmetic shift copies the sign over the gap between it and the exponent.
    const auto widen = [&](auto top) HWY_ATTR {
      const auto spread = hn::ShiftRight<4>(hn::BitCast(di, top));
      return hn::Mul(hn::BitCast(d, hn::And(spread, keep)), scale);
    };
    out[0] = widen(hn::ShiftLeft<24>(words));
    out[1] = widen(hn::ShiftLeft<16>(words));
    out[2] = widen(hn::ShiftLeft<8>(words));
    out[3] = widen(words);
  }

  const std::uint8_t* data;
  const std::uint8_t* scales;
  FloatVec scale = hn::Zero(FloatTag());
};

// A nibble selects one of 16 bf16 values that already carry the group's scale: two byte shuffles
// (low and high bytes), interleaved to bf16, then widened like bf16 weights.
template <>
struct Decoder<WeightFormat::kFp4> {
  static constexpr int kVectors = 8;
  static constexpr std::int64_t kBytes = 4 * kLanes;
  static constexpr std::int64_t kGroup = 1;
  static constexpr float post_scale() { return 1.0F; }

  Decoder(const WeightMatrix& w, std::int64_t row)
      : data(static_cast<const std::uint8_t*>(w.data) + row * (w.cols / 2)),
        scales(w.scales + row * (w.cols / 32)),
        table(fp4_table()) {}

  HWY_INLINE void start_group(std::int64_t /*c*/) {}

  // Half a chunk has one group; its scale stands in for the absent one, whose nibbles are zero.
  HWY_INLINE void start_rest(std::int64_t /*c*/) { second_group = 0; }

  HWY_INLINE void decode(const std::uint8_t* bytes, std::int64_t c, FloatVec* out) const {
    const ByteTag d8;
    const hn::Repartition<std::uint16_t, FloatTag> d16;
    const auto low_bytes = group_tables(c, 0);
    const auto high_bytes = group_tables(c, 16);
    const auto packed = hn::LoadU(d8, bytes);
    const auto mask = hn::Set(d8, std::uint8_t{15});
    const auto even = hn::And(packed, mask);
    const auto odd = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, packed))), mask);
    widen_nibbles(even, low_bytes, high_bytes, out);
    widen_nibbles(odd, low_bytes, high_bytes, out + 4);
  }

  // The tables of the group in each 16-byte block of chunk c; `half` picks low or high bytes.
  HWY_INLINE ByteVec group_tables(std::int64_t c, int half) const {
    const ByteTag d8;
    if constexpr (kLanes == 8) {
      const hn::Half<decltype(d8)> d_half;
      const std::uint8_t first = scales[2 * c];
      const std::uint8_t second = scales[2 * c + second_group];
      return hn::Combine(d8, hn::LoadU(d_half, table.bytes[second] + half),
                         hn::LoadU(d_half, table.bytes[first] + half));
    } else {
      return hn::LoadU(d8, table.bytes[scales[c]] + half);
    }
  }

  static HWY_INLINE void widen_nibbles(ByteVec nibbles, ByteVec low_table, ByteVec high_table,
                                       FloatVec* out) {
    const FloatTag d;
    const WordTag dw;
    const ByteTag d8;
    const auto low = hn::TableLookupBytes(low_table, nibbles);
    const auto high = hn::TableLookupBytes(high_table, nibbles);
    const auto first = hn::BitCast(dw, hn::InterleaveLower(d8, low, high));
    const auto second = hn::BitCast(dw, hn::InterleaveUpper(d8, low, high));
    const auto top = hn::Set(dw, 0xFFFF0000U);
    out[0] = hn::BitCast(d, hn::ShiftLeft<16>(first));
    out[1] = hn::BitCast(d, hn::And(first, top));
    out[2] = hn::BitCast(d, hn::ShiftLeft<16>(second));
    out[3] = hn::BitCast(d, hn::And(second, top));
  }

  const std::uint8_t* data;
  const std::uint8_t* scales;
  std::int64_t second_group = 1;
  const Fp4Table& table;
};

// Column inside its chunk of lane l of vector v: the order that decode() produces.
constexpr std::int64_t pack_order(WeightFormat format, std::int64_t v, std::int64_t l) {
  switch (format) {
    case WeightFormat::kF32:
      return l;
    case WeightFormat::kBf16:
      return 2 * l + v;
    case WeightFormat::kFp8:
      return 4 * l + v;
    case WeightFormat::kFp4: {
      // v = 4 * odd nibble + 2 * upper half of a 16-byte block + odd byte of a pair.
      const std::int64_t block = l / 4;
      const std::int64_t byte = 8 * ((v / 2) % 2) + 2 * (l % 4) + v % 2;
      return 32 * block + 2 * byte + v / 4;
    }
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#endif  // TANDEM_CPU_FAST_WEIGHT_DECODER_INL_H_
