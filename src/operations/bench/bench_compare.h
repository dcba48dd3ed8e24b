// The comparison of two JSON reports of a benchmark.
#pragma once

#include <string>

#include "foundation/base/status.h"

namespace tandem::bench {

struct Comparison {
  std::string text;  // one line per cell and figure, then the verdict
  int better = 0;    // figures
  int worse = 0;
};

// Compares cell by cell: decode rate, time to first token, p99 gap, and the share that mixed cells
// keep. A figure is better or worse only if the 95% intervals of the medians do not overlap and
// the medians differ by more than `noise`; with fewer than kFewestForVerdict values it is
// undecided. Settings that differ and cells that only one report has are named.
// ERRORS: kInvalidArgument if a text is no report or the two share no cell.
Result<Comparison> compare_runs(const std::string& before_json, const std::string& after_json,
                                double noise);

}  // namespace tandem::bench
