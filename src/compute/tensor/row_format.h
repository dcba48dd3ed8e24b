// RowFormat: how one 512-wide KV row or one 128-wide index key lies in a cache.
#pragma once

#include <cstdint>

#include "compute/tensor/portable.h"

namespace tandem::tensor {

enum class RowFormat {
  kF32,   // 4 bytes a value; `reference` numerics
  kBf16,  // 2 bytes a value; exact for `native` numerics (model.md 4.2)
  kFp8,   // KV rows only: 448 e4m3 + 7 e8m0 scales + pad + 64 bf16 = 584 bytes; exact for `native`
};

constexpr int kHeadDim = 512;  // one latent KV row: K and V of all heads
constexpr int kRopeDim = 64;   // its last dims carry the rotation
constexpr int kNopeDim = kHeadDim - kRopeDim;
constexpr int kIndexDim = 128;      // one index key
constexpr int kWindowTokens = 128;  // raw rows that a query sees, itself included

// Bytes of one row of `dim` values. REQUIRES: kFp8 only with dim = kHeadDim.
TANDEM_HD constexpr std::int64_t row_bytes(RowFormat format, int dim) {
  switch (format) {
    case RowFormat::kF32:
      return std::int64_t{4} * dim;
    case RowFormat::kBf16:
      return std::int64_t{2} * dim;
    case RowFormat::kFp8:
      return 584;
  }
  return 0;
}

// Writes one row of floats. kBf16 and kFp8 round; values that `native` numerics already put on
// the format's grid are stored exactly. SOURCE: model.md 4.2.
void store_row(RowFormat format, int dim, const float* values, void* row);

// Reads one row back as floats.
void load_row(RowFormat format, int dim, const void* row, float* values);

}  // namespace tandem::tensor
