// DType: the element types that the checkpoint and the engine use, under their safetensors names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::tensor {

enum class DType {
  kF32,
  kBf16,
  kF8E4M3,  // 8-bit float, max 448, no infinity
  kF8E8M0,  // power-of-two scale, value 2^(byte - 127)
  kI8,      // raw bytes; two packed FP4 (E2M1) values each in expert weights
  kI32,
  kI64,
};

// Bytes of one element.
std::int64_t dtype_bytes(DType dtype);

// The safetensors word: "F32", "BF16", "F8_E4M3", "F8_E8M0", "I8", "I32", "I64".
std::string_view dtype_name(DType dtype);

std::optional<DType> parse_dtype(std::string_view name);

}  // namespace tandem::tensor
