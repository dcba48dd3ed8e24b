// A benchmark run: a list of cells against one server, bounded in time, interruptible, with
// everything that was finished kept.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operations/bench/load.h"

namespace tandem::bench {

struct BenchPlan {
  LoadOptions load;
  std::vector<Cell> cells;
  double max_seconds = 0;  // of the whole run; 0: no limit
  std::string protocol;    // name of a published one, or ""
};

enum class RunEnd { kComplete, kInterrupted, kTimeLimit, kServerGone };

struct BenchRun {
  std::string url;
  std::string started_at;
  BenchPlan plan;
  std::map<ContentClass, PromptScale> scales;
  std::vector<CellResult> cells;
  RunEnd end = RunEnd::kComplete;
};

struct BenchEvents {
  std::function<void(const Cell&, std::size_t place)> cell_started;
  std::function<void()> request_finished;
  std::function<void(const BenchRun&)> cell_finished;  // the run so far, its last cell new
};

// "complete", "interrupted", "time limit", "server gone".
std::string_view end_name(RunEnd end);

// Requests that a cell counts: for progress.
int counted_requests(const LoadOptions& load, const Cell& cell);

// Measures the tokens of a word for each class, then runs the cells in order. Never throws the
// finished cells away: what ended the run is in BenchRun::end.
// ERRORS: those of measure_scale, before any cell ran.
Result<BenchRun> run_bench(BenchRun run, const BenchEvents& events,
                           const std::atomic<bool>& interrupted);

}  // namespace tandem::bench
