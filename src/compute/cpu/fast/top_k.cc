#include "compute/cpu/fast/top_k.h"

#include <bit>
#include <cmath>

namespace tandem::cpu {
namespace {

// An integer that orders like the float: NaN lowest, both zeros equal.
std::uint32_t rank_of(float score) {
  if (std::isnan(score)) {
    return 0;
  }
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// The k-th largest rank, found by three digits of 11, 11 and 10 bits from the top.
// n_above receives how many ranks are larger.
std::uint32_t kth_rank(const float* scores, std::int64_t n, std::int64_t k, std::int64_t* n_above) {
  std::uint32_t prefix = 0;
  std::uint32_t known = 0;  // mask of the digits found so far
  std::int64_t above = 0;
  const int shifts[3] = {21, 10, 0};
  for (const int shift : shifts) {
    const std::uint32_t digit_mask = shift == 0 ? 0x3FFU : 0x7FFU;
    std::int64_t counts[2048] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint32_t rank = rank_of(scores[i]);
      if ((rank & known) == prefix) {
        ++counts[(rank >> shift) & digit_mask];
      }
    }
    std::uint32_t digit = digit_mask;
    while (above + counts[digit] < k) {
      above += counts[digit];
      --digit;
    }
    prefix |= digit << shift;
    known |= digit_mask << shift;
  }
  *n_above = above;
  return prefix;
}

}  // namespace

void select_top_k(const float* scores, std::int64_t n, std::int64_t k, std::int32_t* out) {
  std::int64_t n_above = 0;
  const std::uint32_t threshold = kth_rank(scores, n, k, &n_above);
  std::int64_t ties_left = k - n_above;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t rank = rank_of(scores[i]);
    if (rank > threshold || (rank == threshold && ties_left > 0)) {
      *out++ = static_cast<std::int32_t>(i);
      ties_left -= rank == threshold ? 1 : 0;
    }
  }
}

}  // namespace tandem::cpu
