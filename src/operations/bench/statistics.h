// Medians with intervals: what a handful of noisy measurements can honestly say.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem::bench {

struct Summary {
  std::size_t n = 0;
  double median = 0;
  double low = 0;  // 95% interval of the median
  double high = 0;
  double p95 = 0;
};

// The interval comes from order statistics of the binomial(n, 1/2) distribution: no assumption
// about the noise. With fewer than 6 values it is the whole range.
Summary summarise(std::vector<double> values);

enum class Verdict { kSame, kFaster, kSlower };

// Compares two summaries of a figure where more is better: different only if the intervals do not
// overlap and the medians differ by more than `noise` (a share, for example 0.02).
Verdict compare(const Summary& before, const Summary& after, double noise);

}  // namespace tandem::bench
