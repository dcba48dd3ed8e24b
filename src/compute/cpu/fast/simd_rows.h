// SIMD loops over single rows: quantisation, norms, gates, pooling. Each result depends only on its
// own row. `round` asks for bf16 results (kNative).
#pragma once

#include <cstdint>

namespace tandem::cpu {

constexpr int kMaxStreams = 8;

// The value that act_quant stands for, per block of `block` values; `out` may be x. Equal to
// act_quant_128 / act_sim_64 of compute/cpu/common/simulate.h bit for bit, but for the sign of
// zero.
void quantise_row(const float* x, std::int64_t n, std::int64_t block, float* out);

// Rounds n values to bf16 in place.
void round_row(float* x, std::int64_t n);

void widen_bf16(const std::uint16_t* x, std::int64_t n, float* out);

float sum_of_squares(const float* x, std::int64_t n);

// out = x * scale; `out` may be x.
void scale_row(const float* x, float scale, std::int64_t n, bool round, float* out);

// out = weight * (x * rsqrt(mean(x^2) + eps)); `out` may be x.
void norm_row(const float* x, const std::uint16_t* weight, std::int64_t n, float eps, bool round,
              float* out);

// out[d] = sum_i gates[i] * rows[i * n + d], in order of i.
void weighted_sum(const float* gates, const float* rows, int n_rows, std::int64_t n, bool round,
                  float* out);

// Exit of a hyper-connection for one token: streams [n_streams, n] in place. model.md 2.2.
// REQUIRES: n_streams <= kMaxStreams.
void hc_exit(const float* sublayer, const float* post, const float* comb, int n_streams,
             std::int64_t n, bool round, float* streams);

// x[d] += e[d].
void add_row(const float* e, std::int64_t n, bool round, float* x);

// out = weight * silu(min(gate, limit)) * clamp(up, -limit, limit); gate and up are rounded first
// if `round` is set. model.md 2.11.
void swiglu_row(const float* gate, const float* up, float limit, float weight, std::int64_t n,
                bool round, float* out);

// out[d] = sum_j values[j][d] * softmax over j of logits[j][d], separately for every d.
// model.md 2.6.
void pool_rows(const float* const* values, const float* const* logits, int n_rows, std::int64_t n,
               bool round, float* out);

}  // namespace tandem::cpu
