// Exact selection of the k largest scores in linear time.
#pragma once

#include <cstdint>

namespace tandem::cpu {

// Writes the indices of the k largest of n scores to out, ascending; ties go to the lowest index.
// NaN counts as the lowest score. REQUIRES: 0 < k <= n.
void select_top_k(const float* scores, std::int64_t n, std::int64_t k, std::int32_t* out);

}  // namespace tandem::cpu
