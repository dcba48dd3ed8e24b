// Fp4Table: for every block scale, the 16 values of a nibble times that scale, as bf16 split into
// low and high bytes for byte shuffles. E2M1 times a power of two is exact in bf16.
#pragma once

#include <cstdint>

namespace tandem::cpu {

struct Fp4Table {
  // [e8m0 byte][0..15]: low bytes of codes 0..15; [16..31]: high bytes.
  alignas(64) std::uint8_t bytes[256][32];
};

// Built once.
const Fp4Table& fp4_table();

}  // namespace tandem::cpu
