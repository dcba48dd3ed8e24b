// Rounding that the checkpoint was trained with, on float rows: activation quantisation, cache
// simulation and the Hadamard transform. Both CPU implementations share these scalar loops.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// out[i] = value that act_quant(x, 128) stands for: e4m3(x / s) * s per block of 128 (the last
// block may be short). `out` may be x. SOURCE: model.md 2.0.
void act_quant_128(const float* x, std::int64_t n, float* out);

// Quantise and dequantise in blocks of 64, in place. SOURCE: model.md 2.0 act_sim.
void act_sim_64(float* x, int n);

// Quantise and dequantise to E2M1 in blocks of 32, in place. SOURCE: model.md 2.0 fp4_sim.
void fp4_sim_32(float* x, int n);

// v = H * v * 128^-0.5 in Sylvester order, rounded to bf16, in place. SOURCE: model.md 2.0.
void hadamard_128(float* v);

// Rounds n values to bf16 in place.
void round_bf16_row(float* x, std::int64_t n);

}  // namespace tandem::cpu
