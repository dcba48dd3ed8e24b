// Reports of a benchmark run: CSV rows, JSON, an HTML page with plots, and the comparison of two.
#pragma once

#include <string>
#include <vector>

#include "operations/bench/load.h"

namespace tandem::bench {

struct BenchRun {
  std::string url;
  std::string model;
  std::string started_at;
  std::int64_t max_tokens = 0;
  std::vector<CellResult> cells;
};

// How this protocol differs from the published ones, printed with every run.
std::string protocol_notes();

// One header line, then one line per cell.
std::string to_csv(const BenchRun& run);

// The same figures; compare_runs reads it back.
std::string to_json(const BenchRun& run);

// One self-contained page with SVG plots.
std::string to_html(const BenchRun& run);

// Compares two JSON reports cell by cell: decode tokens/s and time to first token, each called
// faster, slower or same (intervals overlap, or within `noise`).
// ERRORS: kInvalidArgument if a text is no report or the two share no cell.
Result<std::string> compare_runs(const std::string& before_json, const std::string& after_json,
                                 double noise);

}  // namespace tandem::bench
