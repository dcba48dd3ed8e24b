#include "compute/cpu/fast/simd_matrix.h"

#include <algorithm>
#include <cstring>

#include "compute/cpu/fast/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/fast/simd_matrix.cc"
#include <hwy/foreach_target.h>  // first: it includes this file once per target

#include <hwy/highway.h>

#include "compute/cpu/fast/tile-inl.h"
#include "compute/cpu/fast/weight_decoder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {

// Weight rows of one pass: enough independent chains to hide the latency of an add, few enough for
// the registers.
constexpr int rows_at_once(int n_x) {
  return n_x == 1 ? 4 : 2;
}

// Bytes of one weight row.
template <WeightFormat kFormat>
constexpr std::int64_t bytes_of_row(std::int64_t cols) {
  switch (kFormat) {
    case WeightFormat::kF32:
      return cols * 4;
    case WeightFormat::kBf16:
      return cols * 2;
    case WeightFormat::kFp8:
      return cols;
    case WeightFormat::kFp4:
      return cols / 2;
  }
  return 0;
}

// Sums of kX rows of x with kW weight rows.
template <int kX, int kW>
struct Sums {
  FloatVec at[kX][kW];
};

// One chunk of kW weight rows against kX rows of x.
template <WeightFormat kFormat, int kX, int kW>
HWY_INLINE void multiply_chunk(const Decoder<kFormat>* rows, const std::uint8_t* const* bytes,
                               std::int64_t c, const float* const* x, Sums<kX, kW>& sums) {
  constexpr int kVectors = Decoder<kFormat>::kVectors;
  const FloatTag d;
  for (int j = 0; j < kW; ++j) {
    FloatVec w[kVectors];
    rows[j].decode(bytes[j], c, w);
    for (int v = 0; v < kVectors; ++v) {
      for (int m = 0; m < kX; ++m) {
        const auto xv = hn::LoadU(d, x[m] + (c * kVectors + v) * kLanes);
        sums.at[m][j] = hn::MulAdd(w[v], xv, sums.at[m][j]);
      }
    }
  }
}

// Chunks begin .. end-1, all of one scale group.
template <WeightFormat kFormat, int kX, int kW>
HWY_INLINE void multiply_group(Decoder<kFormat>* rows, std::int64_t begin, std::int64_t end,
                               const float* const* x, Sums<kX, kW>& sums) {
  const std::uint8_t* bytes[kW];
  for (int j = 0; j < kW; ++j) {
    rows[j].start_group(begin);
  }
  for (std::int64_t c = begin; c < end; ++c) {
    for (int j = 0; j < kW; ++j) {
      bytes[j] = rows[j].data + c * Decoder<kFormat>::kBytes;
    }
    multiply_chunk<kFormat, kX, kW>(rows, bytes, c, x, sums);
  }
}

// The bytes after the last whole chunk, padded with zero bytes.
template <WeightFormat kFormat, int kX, int kW>
HWY_INLINE void multiply_rest(Decoder<kFormat>* rows, std::int64_t c, std::int64_t n_bytes,
                              const float* const* x, Sums<kX, kW>& sums) {
  std::uint8_t padded[kW][Decoder<kFormat>::kBytes] = {};
  const std::uint8_t* bytes[kW];
  for (int j = 0; j < kW; ++j) {
    rows[j].start_rest(c);
    std::memcpy(padded[j], rows[j].data + c * Decoder<kFormat>::kBytes,
                static_cast<std::size_t>(n_bytes));
    bytes[j] = padded[j];
  }
  multiply_chunk<kFormat, kX, kW>(rows, bytes, c, x, sums);
}

// Few rows of x: weights go from memory through registers straight into the sums.
template <WeightFormat kFormat, int kX, int kW>
HWY_INLINE void multiply_few(const WeightMatrix& w, std::int64_t first, const float* const* x,
                             float* out, std::int64_t out_stride) {
  using Rows = Decoder<kFormat>;
  const FloatTag d;
  const std::int64_t row_bytes = bytes_of_row<kFormat>(w.cols);
  const std::int64_t n_whole = row_bytes / Rows::kBytes;
  Rows rows[4] = {Rows(w, first), Rows(w, first + (kW > 1 ? 1 : 0)),
                  Rows(w, first + (kW > 2 ? 2 : 0)), Rows(w, first + (kW > 3 ? 3 : 0))};
  Sums<kX, kW> sums;
  for (int m = 0; m < kX; ++m) {
    for (int j = 0; j < kW; ++j) {
      sums.at[m][j] = hn::Zero(d);
    }
  }
  std::int64_t c = 0;
  for (; c + Rows::kGroup <= n_whole; c += Rows::kGroup) {
    multiply_group<kFormat, kX, kW>(rows, c, c + Rows::kGroup, x, sums);
  }
  if (c < n_whole) {
    multiply_group<kFormat, kX, kW>(rows, c, n_whole, x, sums);
  }
  if (n_whole * Rows::kBytes < row_bytes) {
    multiply_rest<kFormat, kX, kW>(rows, n_whole, row_bytes - n_whole * Rows::kBytes, x, sums);
  }
  for (int m = 0; m < kX; ++m) {
    for (int j = 0; j < kW; ++j) {
      out[m * out_stride + j] = hn::GetLane(hn::SumOfLanes(d, sums.at[m][j])) * Rows::post_scale();
    }
  }
}

template <WeightFormat kFormat, int kX>
void multiply_few_rows(const WeightMatrix& w, std::int64_t first, std::int64_t count,
                       const float* const* x, float* out, std::int64_t out_stride) {
  constexpr int kW = rows_at_once(kX);
  std::int64_t i = 0;
  for (; i + kW <= count; i += kW) {
    multiply_few<kFormat, kX, kW>(w, first + i, x, out + i, out_stride);
  }
  for (; i < count; ++i) {
    multiply_few<kFormat, kX, 1>(w, first + i, x, out + i, out_stride);
  }
}

// Chunks first_chunk .. first_chunk+n_chunks-1 of one weight row as floats in packed order.
template <WeightFormat kFormat>
HWY_INLINE void decode_row(const WeightMatrix& w, std::int64_t row, std::int64_t first_chunk,
                           std::int64_t n_chunks, float* out) {
  using Row = Decoder<kFormat>;
  const FloatTag d;
  Row decoder(w, row);
  const std::int64_t row_bytes = bytes_of_row<kFormat>(w.cols);
  for (std::int64_t c = first_chunk; c < first_chunk + n_chunks; ++c) {
    const std::uint8_t* bytes = decoder.data + c * Row::kBytes;
    std::uint8_t padded[Row::kBytes];
    if ((c + 1) * Row::kBytes > row_bytes) {
      std::fill_n(padded, Row::kBytes, std::uint8_t{0});
      std::memcpy(padded, bytes, static_cast<std::size_t>(row_bytes - c * Row::kBytes));
      bytes = padded;
      decoder.start_rest(c);
    } else if (c % Row::kGroup == 0) {
      decoder.start_group(c);
    }
    FloatVec vectors[Row::kVectors];
    decoder.decode(bytes, c, vectors);
    for (int v = 0; v < Row::kVectors; ++v) {
      hn::StoreU(vectors[v], d, out + v * kLanes);
    }
    out += Row::kVectors * kLanes;
  }
}

// Adds the products over one block of k: n_w decoded rows, which stay in the first-level cache,
// against n_x rows of x.
void multiply_block(std::int64_t n_w, const float* const* x, std::int64_t n_x, std::int64_t k,
                    std::int64_t n_k, MatrixScratch& scratch) {
  for (std::int64_t m = 0; m < n_x; m += kTileX) {
    const int n = static_cast<int>(std::min<std::int64_t>(kTileX, n_x - m));
    for (std::int64_t j = 0; j < n_w; j += kTileW) {
      float* acc = scratch.sums + (j * kBlockX + m * kTileW) * kLanes;
      accumulate_rows(n, scratch.weights + j * kBlockK, kBlockK, x + m, k, n_k, acc);
    }
  }
}

// Many rows of x: a block of weights is decoded once into cache and used for kBlockX rows.
template <WeightFormat kFormat>
void multiply_many_rows(const WeightMatrix& w, std::int64_t first, std::int64_t count,
                        const float* const* x, std::int64_t n_x, float* out,
                        std::int64_t out_stride, MatrixScratch& scratch) {
  constexpr std::int64_t kChunk = Decoder<kFormat>::kVectors * kLanes;
  static_assert(kBlockK % kChunk == 0);
  const std::int64_t cols = (w.cols + kChunk - 1) / kChunk * kChunk;
  const std::int64_t padded_count = (count + kTileW - 1) / kTileW * kTileW;
  std::fill_n(scratch.sums, padded_count * kBlockX * kLanes, 0.0F);
  for (std::int64_t k = 0; k < cols; k += kBlockK) {
    const std::int64_t n_k = std::min(kBlockK, cols - k);
    for (std::int64_t j = 0; j < padded_count; ++j) {
      // Rows past the end repeat the last one; their sums are not used.
      decode_row<kFormat>(w, first + std::min(j, count - 1), k / kChunk, n_k / kChunk,
                          scratch.weights + j * kBlockK);
    }
    multiply_block(padded_count, x, n_x, k, n_k, scratch);
  }
  for (std::int64_t m = 0; m < n_x; ++m) {
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t tile = j / kTileW * kTileW * kBlockX + m / kTileX * kTileX * kTileW;
      const float* acc = scratch.sums + (tile + m % kTileX * kTileW + j % kTileW) * kLanes;
      out[m * out_stride + j] = lane_sum(acc) * Decoder<kFormat>::post_scale();
    }
  }
}

template <WeightFormat kFormat>
void multiply_format(const WeightMatrix& w, std::int64_t first, std::int64_t count,
                     const float* const* x, std::int64_t n_x, float* out, std::int64_t out_stride,
                     MatrixScratch& scratch) {
  switch (n_x) {
    case 0:
      return;
    case 1:
      return multiply_few_rows<kFormat, 1>(w, first, count, x, out, out_stride);
    case 2:
      return multiply_few_rows<kFormat, 2>(w, first, count, x, out, out_stride);
    case 3:
      return multiply_few_rows<kFormat, 3>(w, first, count, x, out, out_stride);
    default:
      break;
  }
  for (std::int64_t m = 0; m < n_x; m += kBlockX) {
    for (std::int64_t j = 0; j < count; j += kBlockW) {
      multiply_many_rows<kFormat>(w, first + j, std::min(kBlockW, count - j), x + m,
                                  std::min(kBlockX, n_x - m), out + m * out_stride + j, out_stride,
                                  scratch);
    }
  }
}

void multiply_rows_simd(const WeightMatrix& w, std::int64_t first, std::int64_t count,
                        const float* const* x, std::int64_t n_x, float* out,
                        std::int64_t out_stride, MatrixScratch& scratch) {
  switch (w.format) {
    case WeightFormat::kF32:
      return multiply_format<WeightFormat::kF32>(w, first, count, x, n_x, out, out_stride, scratch);
    case WeightFormat::kBf16:
      return multiply_format<WeightFormat::kBf16>(w, first, count, x, n_x, out, out_stride,
                                                  scratch);
    case WeightFormat::kFp8:
      return multiply_format<WeightFormat::kFp8>(w, first, count, x, n_x, out, out_stride, scratch);
    case WeightFormat::kFp4:
      return multiply_format<WeightFormat::kFp4>(w, first, count, x, n_x, out, out_stride, scratch);
  }
}

constexpr std::int64_t vectors_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return Decoder<WeightFormat::kF32>::kVectors;
    case WeightFormat::kBf16:
      return Decoder<WeightFormat::kBf16>::kVectors;
    case WeightFormat::kFp8:
      return Decoder<WeightFormat::kFp8>::kVectors;
    case WeightFormat::kFp4:
      return Decoder<WeightFormat::kFp4>::kVectors;
  }
  return 1;
}

std::int64_t packed_cols_simd(WeightFormat format, std::int64_t cols) {
  const std::int64_t chunk = vectors_of(format) * kLanes;
  return (cols + chunk - 1) / chunk * chunk;
}

// pack_order() of a whole chunk as a table.
template <WeightFormat kFormat>
struct PackOrder {
  static constexpr std::int64_t kChunk = Decoder<kFormat>::kVectors * kLanes;

  constexpr PackOrder() {
    for (std::int64_t i = 0; i < kChunk; ++i) {
      column[i] = static_cast<std::uint8_t>(pack_order(kFormat, i / kLanes, i % kLanes));
    }
  }

  std::uint8_t column[kChunk] = {};
};

template <WeightFormat kFormat>
void pack_format(const float* x, std::int64_t cols, float* out) {
  static constexpr PackOrder<kFormat> kOrder;
  constexpr std::int64_t kChunk = PackOrder<kFormat>::kChunk;
  const std::int64_t whole = cols / kChunk * kChunk;
  for (std::int64_t begin = 0; begin < whole; begin += kChunk) {
    for (std::int64_t i = 0; i < kChunk; ++i) {
      out[begin + i] = x[begin + kOrder.column[i]];
    }
  }
  for (std::int64_t i = 0; whole < cols && i < kChunk; ++i) {
    const std::int64_t k = whole + kOrder.column[i];
    out[whole + i] = k < cols ? x[k] : 0.0F;
  }
}

void pack_row_simd(WeightFormat format, const float* x, std::int64_t cols, float* out) {
  switch (format) {
    case WeightFormat::kF32:
      return pack_format<WeightFormat::kF32>(x, cols, out);
    case WeightFormat::kBf16:
      return pack_format<WeightFormat::kBf16>(x, cols, out);
    case WeightFormat::kFp8:
      return pack_format<WeightFormat::kFp8>(x, cols, out);
    case WeightFormat::kFp4:
      return pack_format<WeightFormat::kFp4>(x, cols, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(multiply_rows_simd);
HWY_EXPORT(packed_cols_simd);
HWY_EXPORT(pack_row_simd);

std::int64_t packed_cols(tensor::WeightFormat format, std::int64_t cols) {
  return HWY_DYNAMIC_DISPATCH(packed_cols_simd)(format, cols);
}

bool packs_as_is(tensor::WeightFormat format, std::int64_t cols) {
  return format == tensor::WeightFormat::kF32 && packed_cols(format, cols) == cols;
}

void pack_row(tensor::WeightFormat format, const float* x, std::int64_t cols, float* out) {
  HWY_DYNAMIC_DISPATCH(pack_row_simd)(format, x, cols, out);
}

void multiply_rows(const tensor::WeightMatrix& w, std::int64_t first, std::int64_t count,
                   const float* const* x, std::int64_t n_rows, float* out, std::int64_t out_stride,
                   MatrixScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(multiply_rows_simd)
  (w, first, count, x, n_rows, out, out_stride, scratch);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
