#include "apps/tandem/bench_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "operations/bench/bench_report.h"

namespace tandem::apps {
namespace {

constexpr int kBarWidth = 24;

}  // namespace

BenchProgress::BenchProgress(const bench::BenchPlan& plan)
    : bar_(isatty(STDERR_FILENO) == 1),
      cells_(plan.cells.size()),
      max_seconds_(plan.max_seconds),
      start_(std::chrono::steady_clock::now()) {
  for (const bench::Cell& cell : plan.cells) {
    requests_ += bench::counted_requests(plan.load, cell);
  }
}

void BenchProgress::cell_started(const bench::Cell& cell, std::size_t place) {
  const std::lock_guard<std::mutex> lock(mutex_);
  place_ = place;
  cell_ = bench::cell_name(cell);
  if (bar_) {
    draw();
  } else {
    std::fprintf(stderr, "cell %zu of %zu: %s\n", place + 1, cells_, cell_.c_str());
  }
}

void BenchProgress::request_finished() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++finished_;
  if (bar_) {
    draw();
  }
}

void BenchProgress::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bar_) {
    std::fprintf(stderr, "\r\033[K");
    std::fflush(stderr);
  }
}

void BenchProgress::draw() {
  const int done = requests_ > 0 ? std::min(kBarWidth, kBarWidth * finished_ / requests_) : 0;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  std::string limit;
  if (max_seconds_ > 0) {
    limit = fmt::format(" of at most {:.0f}", max_seconds_);
  }
  const std::string line =
      fmt::format("[{}{}] {} of {} requests, {:.0f}{} s, cell {} of {}: {}",
                  std::string(static_cast<std::size_t>(done), '#'),
                  std::string(static_cast<std::size_t>(kBarWidth - done), '.'), finished_,
                  requests_, passed.count(), limit, place_ + 1, cells_, cell_);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace tandem::apps
