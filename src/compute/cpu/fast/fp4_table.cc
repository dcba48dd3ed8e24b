#include "compute/cpu/fast/fp4_table.h"

#include "compute/tensor/numeric_formats.h"

namespace tandem::cpu {
namespace {

Fp4Table build() {
  Fp4Table table;
  for (int scale = 0; scale < 256; ++scale) {
    for (int code = 0; code < 16; ++code) {
      const float value = tensor::e2m1_to_float(static_cast<std::uint8_t>(code)) *
                          tensor::e8m0_to_float(static_cast<std::uint8_t>(scale));
      const std::uint16_t bits = tensor::float_to_bf16(value);
      table.bytes[scale][code] = static_cast<std::uint8_t>(bits & 0xFFU);
      table.bytes[scale][16 + code] = static_cast<std::uint8_t>(bits >> 8);
    }
  }
  return table;
}

}  // namespace

const Fp4Table& fp4_table() {
  static const Fp4Table table = build();
  return table;
}

}  // namespace tandem::cpu
