#include "operations/bench/bench_run.h"

#include <chrono>
#include <thread>

namespace tandem::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Sets `halt` when the user interrupts or the time is over, and knows which it was.
class Watch {
 public:
  Watch(double max_seconds, const std::atomic<bool>& interrupted)
      : thread_([this, max_seconds, &interrupted](std::stop_token done) {
          const auto start = SteadyClock::now();
          while (!done.stop_requested() && !halt.load()) {
            const std::chrono::duration<double> passed = SteadyClock::now() - start;
            late_ = max_seconds > 0 && passed.count() > max_seconds;
            if (late_ || interrupted.load()) {
              halt = true;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}

  RunEnd reason() const { return late_.load() ? RunEnd::kTimeLimit : RunEnd::kInterrupted; }

  std::atomic<bool> halt{false};

 private:
  std::atomic<bool> late_{false};
  std::jthread thread_;
};

}  // namespace

std::string_view end_name(RunEnd end) {
  switch (end) {
    case RunEnd::kComplete:
      return "complete";
    case RunEnd::kInterrupted:
      return "interrupted";
    case RunEnd::kTimeLimit:
      return "time limit";
    case RunEnd::kServerGone:
      return "server gone";
  }
  return "";
}

int counted_requests(const LoadOptions& load, const Cell& cell) {
  return load.requests_per_stream * (cell.mixed_prompt_tokens > 0 ? 1 : cell.concurrency);
}

Result<BenchRun> run_bench(BenchRun run, const BenchEvents& events,
                           const std::atomic<bool>& interrupted) {
  const LoadOptions& load = run.plan.load;
  Watch watch(run.plan.max_seconds, interrupted);
  for (const Cell& cell : run.plan.cells) {
    if (run.scales.count(cell.content) == 0) {
      const std::uint64_t seed = load.seed ^ static_cast<std::uint64_t>(cell.content) << 32;
      TANDEM_ASSIGN(run.scales[cell.content],
                    measure_scale(load.target, cell.content, seed, watch.halt));
    }
  }
  for (std::size_t i = 0; i < run.plan.cells.size() && run.end == RunEnd::kComplete; ++i) {
    const Cell& cell = run.plan.cells[i];
    events.cell_started(cell, i);
    const auto run_cell = cell.mixed_prompt_tokens > 0 ? run_mixed_cell : run_load_cell;
    run.cells.push_back(
        run_cell(load, cell, run.scales[cell.content], events.request_finished, watch.halt));
    if (run.cells.back().end == CellEnd::kServerGone) {
      run.end = RunEnd::kServerGone;
    } else if (run.cells.back().end == CellEnd::kStopped ||
               (watch.halt.load() && i + 1 < run.plan.cells.size())) {
      run.end = watch.reason();
    }
    events.cell_finished(run);
  }
  return run;
}

}  // namespace tandem::bench
