// WeightMatrix: a view of one weight [rows = out, cols = in] as it lies in memory, packed.
#pragma once

#include <cstdint>

namespace tandem::tensor {

enum class WeightFormat {
  kF32,   // float [rows, cols]
  kBf16,  // uint16 [rows, cols]
  kFp8,   // e4m3 [rows, cols]; e8m0 scales [ceil(rows/128), ceil(cols/128)]
  kFp4,   // e2m1 packed [rows, cols/2], low nibble = even column; e8m0 scales [rows, cols/32]
};

// Non-owning and trivially copyable. y = x * W^T. SOURCE: model.md 2.0, 3.2.
struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const void* data = nullptr;
  const std::uint8_t* scales = nullptr;  // nullptr for kF32 and kBf16

  bool is_quantised() const { return format == WeightFormat::kFp8 || format == WeightFormat::kFp4; }

  // Bytes of weights and scales.
  std::int64_t bytes() const {
    switch (format) {
      case WeightFormat::kF32:
        return rows * cols * 4;
      case WeightFormat::kBf16:
        return rows * cols * 2;
      case WeightFormat::kFp8:
        return rows * cols + ((rows + 127) / 128) * ((cols + 127) / 128);
      case WeightFormat::kFp4:
        return rows * cols / 2 + rows * (cols / 32);
    }
    return 0;
  }
};

}  // namespace tandem::tensor
