#include "compute/cpu/fast/thread_pool.h"

#include <chrono>
#include <limits>

#include "foundation/base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tandem::cpu {
namespace {

// Long enough to bridge the gaps between the ops of one step, short enough not to be seen.
constexpr std::chrono::microseconds kSpinTime{50};
constexpr int kPausesPerLook = 32;

void pause_briefly() {
  for (int i = 0; i < kPausesPerLook; ++i) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) {
  TANDEM_CHECK(n_threads >= 1, "a pool counts its caller");
  for (int thread = 1; thread < n_threads; ++thread) {
    workers_.emplace_back(&ThreadPool::worker, this, thread);
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& thread : workers_) {
    thread.join();
  }
}

bool ThreadPool::has_items() const {
  return static_cast<std::uint32_t>(ticket_.load()) != 0;
}

void ThreadPool::run(std::int64_t n_items, Call function, const void* body) {
  TANDEM_CHECK(n_items <= std::numeric_limits<std::uint32_t>::max(), "too many items in a job");
  call_ = function;
  body_ = body;
  n_items_ = static_cast<std::uint32_t>(n_items);
  n_done_.store(0);
  ++job_;
  ticket_.store((std::uint64_t{job_} << 32) | n_items_);
  // A worker counts itself as asleep before its last look at the ticket, so either it sees this
  // job or it is seen here.
  if (sleepers_.load() > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    wake_.notify_all();
  }
  work(0);
  for (int looks = 0; n_done_.load(std::memory_order_acquire) != n_items_; ++looks) {
    if (looks < 64) {
      pause_briefly();
    } else {
      std::this_thread::yield();  // the worker may be off its core
    }
  }
}

void ThreadPool::work(int thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(ticket) != 0) {
    if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      // The job cannot end, nor its fields change, before this item is counted as done.
      const std::uint32_t left = static_cast<std::uint32_t>(ticket);
      call_(body_, std::int64_t{n_items_} - left, thread);
      n_done_.fetch_add(1, std::memory_order_release);
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }
}

void ThreadPool::worker(int thread) {
  while (!stop_.load()) {
    work(thread);
    const auto until = std::chrono::steady_clock::now() + kSpinTime;
    while (!has_items() && std::chrono::steady_clock::now() < until) {
      pause_briefly();
    }
    if (has_items()) {
      continue;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, [this] { return stop_.load() || has_items(); });
    sleepers_.fetch_sub(1);
  }
}

}  // namespace tandem::cpu
