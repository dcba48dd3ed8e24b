// Medians with intervals: what a handful of noisy measurements can honestly say.
#pragma once

#include <cstddef>
#include <string>
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

// The smallest value that at least a share `q` of the values does not exceed; 0 without values.
double quantile(std::vector<double> values, double q);

// Fewest values on each side from which a verdict is given: with 4 against 4 two equal machines
// give ranges that do not touch in 2 of 70 cases, with 3 against 3 in 2 of 20.
constexpr std::size_t kFewestForVerdict = 4;

enum class Verdict { kSame, kMore, kLess, kTooFew };

// Compares two summaries of a figure: different only if the intervals do not overlap and the
// medians differ by more than `noise` (a share, for example 0.02).
Verdict compare(const Summary& before, const Summary& after, double noise);

}  // namespace tandem::bench
