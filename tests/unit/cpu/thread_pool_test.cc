#include "compute/cpu/fast/thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tandem::cpu {
namespace {

TEST(ThreadPool, RunsEveryItemOnceInManySmallJobs) {
  for (const int n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    EXPECT_EQ(pool.n_threads(), n_threads);
    for (int job = 0; job < 2000; ++job) {
      const int n_items = job % 9;
      std::vector<int> runs(static_cast<std::size_t>(n_items), 0);
      std::atomic<bool> bad_thread{false};
      pool.for_each(n_items, [&](std::int64_t item, int thread) {
        runs[static_cast<std::size_t>(item)] += 1 + job;
        if (thread < 0 || thread >= n_threads) {
          bad_thread = true;
        }
      });
      ASSERT_EQ(runs, std::vector<int>(static_cast<std::size_t>(n_items), 1 + job));
      ASSERT_FALSE(bad_thread);
    }
  }
}

TEST(ThreadPool, WorkersHelp) {
  ThreadPool pool(2);
  std::atomic<int> waiting{0};
  // Each of two items waits for the other: only two threads can finish them.
  pool.for_each(2, [&](std::int64_t, int) {
    waiting.fetch_add(1);
    while (waiting.load() < 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(waiting.load(), 2);
}

TEST(ThreadPool, SleepsWhenIdleAndWakesUp) {
  ThreadPool pool(3);
  std::atomic<int> count{0};
  pool.for_each(8, [&](std::int64_t, int) { count.fetch_add(1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  timespec before{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  timespec after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.004) << "idle workers burn the processor";  // 2% of one core
  pool.for_each(8, [&](std::int64_t, int) { count.fetch_add(1); });
  EXPECT_EQ(count.load(), 16);
}

}  // namespace
}  // namespace tandem::cpu
