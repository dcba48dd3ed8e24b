// SIMD loops of attention and of the indexer over tiles of keys that were widened to floats.
#pragma once

#include <cstdint>

#include "compute/tensor/row_format.h"

namespace tandem::cpu {

// Keys that are widened at once, and the floats between them: 16 more than a row, so that the same
// dims of many keys do not fall into one cache set.
constexpr std::int64_t kKeyTile = 48;
constexpr std::int64_t kKeyPad = 16;

// Rounds a count of keys up to the padding that the functions below may touch.
constexpr std::int64_t padded_keys(std::int64_t n) {
  return (n + 7) / 8 * 8;
}

// Widens one cache row to floats, like tensor::load_row.
void load_key(tensor::RowFormat format, int dim, const void* row, float* out);

// scores[q * score_stride + j] = queries[q * dim .. ] . keys[j * key_stride ..] in float32.
// dim and key_stride are multiples of 8; keys has room for a multiple of 3 rows.
void dot_tile(const float* queries, std::int64_t n_queries, const float* keys, std::int64_t n_keys,
              std::int64_t key_stride, std::int64_t dim, float* scores, std::int64_t score_stride);

// In place over n scores: s = exp(s * scale - m) with m the largest scaled score or the sink.
// Returns 1 / (sum + exp(sink - m)). The row has room for padded_keys(n); the rest becomes 0.
float softmax_weights(float* scores, std::int64_t n, float scale, float sink);

// out[h * dim + i] += sum_j weights[h * weight_stride + j] * keys[j * key_stride + i], in order of
// j. dim is a multiple of 16.
void add_values(const float* weights, std::int64_t weight_stride, std::int64_t n_heads,
                const float* keys, std::int64_t n_keys, std::int64_t key_stride, std::int64_t dim,
                float* out);

// out[j] = sum_h weights[h] * max(0, dots[h * dot_stride + j]) in order of h, for j < n. Rows of
// dots have room for padded_keys(n), and so has out.
void relu_sum(const float* weights, std::int64_t n_heads, const float* dots,
              std::int64_t dot_stride, std::int64_t n, float* out);

}  // namespace tandem::cpu
