// CostTable: what a decode step of n rows costs, from measurements. Between measured row counts it
// interpolates; where nothing was measured it scales by what a row more is expected to read: a
// share that does not depend on the rows (dense weights), and the experts that the rows choose
// between them.
#pragma once

#include <cstdint>
#include <vector>

namespace tandem::speculation {

// Expected number of different experts that n_rows rows choose, top_k of n_experts each, if they
// chose independently: E * (1 - (1 - k / E)^n). SOURCE: model.md 7.6.
double expected_unique_experts(double n_rows, int n_experts, int top_k);

struct CostOptions {
  int n_experts = 256;
  int top_k = 6;
  double dense_share = 0.5;  // of a one-row step, before anything was measured
};

class CostTable {
 public:
  explicit CostTable(const CostOptions& options) : options_(options) {}

  void record(std::int64_t n_rows, double step_us);

  // Estimated time of a step. Relative to a one-row step of 1 before anything was measured.
  double step_us(std::int64_t n_rows) const;

 private:
  double expected(std::int64_t n_rows) const;

  struct Entry {
    std::int64_t n_rows;
    double mean_us;
  };

  CostOptions options_;
  std::vector<Entry> entries_;  // by n_rows
};

}  // namespace tandem::speculation
