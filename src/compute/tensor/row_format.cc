#include "compute/tensor/row_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/tensor/numeric_formats.h"
#include "foundation/base/check.h"

namespace tandem::tensor {
namespace {

// The 584 bytes of one kFp8 row, in order. SOURCE: model.md 4.2.
constexpr int kFp8Block = 64;
constexpr int kFp8Blocks = kNopeDim / kFp8Block;
constexpr int kFp8ScaleOffset = kNopeDim;
constexpr int kFp8RopeOffset = kFp8ScaleOffset + kFp8Blocks + 1;
static_assert(kFp8RopeOffset + 2 * kRopeDim == row_bytes(RowFormat::kFp8, kHeadDim));

void store_bf16(const float* values, int n, std::uint8_t* out) {
  for (int i = 0; i < n; ++i) {
    const std::uint16_t bits = float_to_bf16(values[i]);
    std::memcpy(out + 2 * i, &bits, sizeof(bits));
  }
}

void load_bf16(const std::uint8_t* in, int n, float* values) {
  for (int i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, in + 2 * i, sizeof(bits));
    values[i] = bf16_to_float(bits);
  }
}

void store_fp8_row(const float* values, std::uint8_t* out) {
  for (int b = 0; b < kFp8Blocks; ++b) {
    const float* block = values + b * kFp8Block;
    float amax = 0;
    for (int i = 0; i < kFp8Block; ++i) {
      amax = std::max(amax, std::fabs(block[i]));
    }
    const float scale = act_quant_scale(amax);
    for (int i = 0; i < kFp8Block; ++i) {
      out[b * kFp8Block + i] = float_to_e4m3(std::clamp(block[i] / scale, -448.0F, 448.0F));
    }
    out[kFp8ScaleOffset + b] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(scale) >> 23);
  }
  out[kFp8ScaleOffset + kFp8Blocks] = 0;
  store_bf16(values + kNopeDim, kRopeDim, out + kFp8RopeOffset);
}

void load_fp8_row(const std::uint8_t* in, float* values) {
  for (int b = 0; b < kFp8Blocks; ++b) {
    const float scale = e8m0_to_float(in[kFp8ScaleOffset + b]);
    for (int i = b * kFp8Block; i < (b + 1) * kFp8Block; ++i) {
      values[i] = e4m3_to_float(in[i]) * scale;
    }
  }
  load_bf16(in + kFp8RopeOffset, kRopeDim, values + kNopeDim);
}

}  // namespace

void store_row(RowFormat format, int dim, const float* values, void* row) {
  auto* bytes = static_cast<std::uint8_t*>(row);
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(bytes, values, sizeof(float) * static_cast<std::size_t>(dim));
      return;
    case RowFormat::kBf16:
      store_bf16(values, dim, bytes);
      return;
    case RowFormat::kFp8:
      TANDEM_CHECK(dim == kHeadDim, "fp8 rows hold one latent KV row of 512 values");
      store_fp8_row(values, bytes);
      return;
  }
}

void load_row(RowFormat format, int dim, const void* row, float* values) {
  const auto* bytes = static_cast<const std::uint8_t*>(row);
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(values, bytes, sizeof(float) * static_cast<std::size_t>(dim));
      return;
    case RowFormat::kBf16:
      load_bf16(bytes, dim, values);
      return;
    case RowFormat::kFp8:
      TANDEM_CHECK(dim == kHeadDim, "fp8 rows hold one latent KV row of 512 values");
      load_fp8_row(bytes, values);
      return;
  }
}

}  // namespace tandem::tensor
