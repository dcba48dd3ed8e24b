#include "compute/cpu/reference/weight_row.h"

#include <cstring>

#include "compute/tensor/numeric_formats.h"

namespace tandem::cpu::reference {
namespace {

void decode_fp8(const tensor::WeightMatrix& w, std::int64_t row, float* out) {
  const auto* codes = static_cast<const std::uint8_t*>(w.data) + row * w.cols;
  const std::uint8_t* scales = w.scales + (row / 128) * ((w.cols + 127) / 128);
  for (std::int64_t c = 0; c < w.cols; ++c) {
    out[c] = tensor::e4m3_to_float(codes[c]) * tensor::e8m0_to_float(scales[c / 128]);
  }
}

void decode_fp4(const tensor::WeightMatrix& w, std::int64_t row, float* out) {
  const auto* pairs = static_cast<const std::uint8_t*>(w.data) + row * (w.cols / 2);
  const std::uint8_t* scales = w.scales + row * (w.cols / 32);
  for (std::int64_t c = 0; c < w.cols; ++c) {
    const int nibble = (c % 2 == 0) ? pairs[c / 2] & 15 : pairs[c / 2] >> 4;
    out[c] = tensor::e2m1_to_float(static_cast<std::uint8_t>(nibble)) *
             tensor::e8m0_to_float(scales[c / 32]);
  }
}

}  // namespace

void decode_weight_row(const tensor::WeightMatrix& w, std::int64_t row, float* out) {
  switch (w.format) {
    case tensor::WeightFormat::kF32:
      std::memcpy(out, static_cast<const float*>(w.data) + row * w.cols,
                  sizeof(float) * static_cast<std::size_t>(w.cols));
      return;
    case tensor::WeightFormat::kBf16: {
      const auto* bits = static_cast<const std::uint16_t*>(w.data) + row * w.cols;
      for (std::int64_t c = 0; c < w.cols; ++c) {
        out[c] = tensor::bf16_to_float(bits[c]);
      }
      return;
    }
    case tensor::WeightFormat::kFp8:
      decode_fp8(w, row, out);
      return;
    case tensor::WeightFormat::kFp4:
      decode_fp4(w, row, out);
      return;
  }
}

}  // namespace tandem::cpu::reference
