#include "engine/speculation/cost_table.h"

#include <algorithm>
#include <cmath>

namespace tandem::speculation {
namespace {

constexpr double kNewWeight = 0.1;

}  // namespace

double expected_unique_experts(double n_rows, int n_experts, int top_k) {
  const double miss = 1.0 - static_cast<double>(top_k) / n_experts;
  return n_experts * (1.0 - std::pow(miss, n_rows));
}

double CostTable::expected(std::int64_t n_rows) const {
  const double one = expected_unique_experts(1.0, options_.n_experts, options_.top_k);
  const double all =
      expected_unique_experts(static_cast<double>(n_rows), options_.n_experts, options_.top_k);
  return options_.dense_share + (1.0 - options_.dense_share) * all / one;
}

void CostTable::record(std::int64_t n_rows, double step_us) {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), n_rows,
                       [](const Entry& entry, std::int64_t rows) { return entry.n_rows < rows; });
  if (at == entries_.end() || at->n_rows != n_rows) {
    entries_.insert(at, {n_rows, step_us});
  } else {
    at->mean_us += kNewWeight * (step_us - at->mean_us);
  }
}

double CostTable::step_us(std::int64_t n_rows) const {
  if (entries_.empty()) {
    return expected(n_rows);
  }
  const auto above =
      std::lower_bound(entries_.begin(), entries_.end(), n_rows,
                       [](const Entry& entry, std::int64_t rows) { return entry.n_rows < rows; });
  if (above != entries_.end() && above->n_rows == n_rows) {
    return above->mean_us;
  }
  if (above == entries_.begin() || above == entries_.end()) {
    const Entry& nearest = above == entries_.begin() ? *above : entries_.back();
    return nearest.mean_us * expected(n_rows) / expected(nearest.n_rows);
  }
  const Entry& below = *std::prev(above);
  const double share = static_cast<double>(n_rows - below.n_rows) /
                       static_cast<double>(above->n_rows - below.n_rows);
  return below.mean_us + share * (above->mean_us - below.mean_us);
}

}  // namespace tandem::speculation
