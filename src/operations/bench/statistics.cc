#include "operations/bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace tandem::bench {
namespace {

// Largest k with P(X < k) <= 2.5% for X ~ binomial(n, 1/2); 0 if n is too small for it.
std::size_t interval_rank(std::size_t n) {
  double probability = std::pow(0.5, static_cast<double>(n));
  double below = 0;
  std::size_t k = 0;
  while (k < n && below + probability <= 0.025) {
    below += probability;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k;
}

}  // namespace

Summary summarise(std::vector<double> values) {
  Summary out;
  out.n = values.size();
  if (values.empty()) {
    return out;
  }
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  out.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  const std::size_t k = interval_rank(n);
  out.low = values[k == 0 ? 0 : k - 1];
  out.high = values[k == 0 ? n - 1 : n - k];
  out.p95 = values[std::min(n - 1, static_cast<std::size_t>(0.95 * static_cast<double>(n)))];
  return out;
}

Verdict compare(const Summary& before, const Summary& after, double noise) {
  const double change = before.median == 0 ? 0 : after.median / before.median - 1;
  if (std::fabs(change) <= noise) {
    return Verdict::kSame;
  }
  if (after.low > before.high) {
    return Verdict::kFaster;
  }
  if (after.high < before.low) {
    return Verdict::kSlower;
  }
  return Verdict::kSame;
}

}  // namespace tandem::bench
