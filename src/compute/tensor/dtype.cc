#include "compute/tensor/dtype.h"

#include <array>

namespace tandem::tensor {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<Row, 7> kRows = {{
    {DType::kF32, "F32", 4},
    {DType::kBf16, "BF16", 2},
    {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E8M0, "F8_E8M0", 1},
    {DType::kI8, "I8", 1},
    {DType::kI32, "I32", 4},
    {DType::kI64, "I64", 8},
}};

}  // namespace

std::int64_t dtype_bytes(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].bytes;
}

std::string_view dtype_name(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace tandem::tensor
