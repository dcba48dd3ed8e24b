// The progress of a benchmark: a bar on a terminal, one quiet line per cell elsewhere.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "operations/bench/bench_run.h"

namespace tandem::apps {

class BenchProgress {
 public:
  explicit BenchProgress(const bench::BenchPlan& plan);

  void cell_started(const bench::Cell& cell, std::size_t place);

  // Thread-safe: streams call it.
  void request_finished();

  // Takes the bar away, so that a row can be printed.
  void clear();

 private:
  void draw();

  bool bar_;
  std::size_t cells_;
  int requests_ = 0;  // of the whole run
  int finished_ = 0;
  double max_seconds_;
  std::size_t place_ = 0;
  std::string cell_;
  std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
};

}  // namespace tandem::apps
