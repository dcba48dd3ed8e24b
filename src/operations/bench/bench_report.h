// Reports of a benchmark run: rows for people, CSV, JSON, and an HTML page with plots.
#pragma once

#include <string>

#include "operations/bench/bench_run.h"

namespace tandem::bench {

// "prose c=4 8192 tokens cold": the same cell of two runs has the same name.
std::string cell_name(const Cell& cell);

// The heading of the rows below, one line.
std::string row_heading();

// One line (and a second with what went wrong, if anything did) for a finished cell.
std::string row(const CellResult& cell);

// One header line, then one line per cell. Times in seconds, rates in tokens per second.
std::string to_csv(const BenchRun& run);

// The same figures with their intervals; compare_runs reads it back.
std::string to_json(const BenchRun& run);

// One self-contained page: plots as SVG, the rules of measurement, the rows, the errors.
std::string to_html(const BenchRun& run);

}  // namespace tandem::bench
