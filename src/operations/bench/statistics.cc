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
  out.p95 = quantile(std::move(values), 0.95);
  return out;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto place = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return values[std::min(place, values.size() - 1)];
}

Verdict compare(const Summary& before, const Summary& after, double noise) {
  if (before.n < kFewestForVerdict || after.n < kFewestForVerdict) {
    return Verdict::kTooFew;
  }
  const double change = before.median == 0 ? 0 : after.median / before.median - 1;
  if (std::fabs(change) <= noise) {
    return Verdict::kSame;
  }
  if (after.low > before.high) {
    return Verdict::kMore;
  }
  if (after.high < before.low) {
    return Verdict::kLess;
  }
  return Verdict::kSame;
}

}  // namespace tandem::bench
