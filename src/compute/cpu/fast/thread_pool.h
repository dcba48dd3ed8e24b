// ThreadPool: runs the items of one job on a few threads. The caller works too; workers spin for a
// moment after a job, then sleep, so an idle process uses no CPU.
//
// Which thread runs which item is not fixed: an item must write only what belongs to it, and then
// no result can depend on the number of threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::cpu {

class ThreadPool {
 public:
  // n_threads >= 1 counts the caller.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(item, thread) once for every item in 0 .. n_items-1 and returns when all are done.
  // thread is in 0 .. n_threads-1 and names who runs it, for scratch memory. One caller at a time.
  template <typename Body>
  void for_each(std::int64_t n_items, const Body& body) {
    if (n_items <= 1 || workers_.empty()) {
      for (std::int64_t i = 0; i < n_items; ++i) {
        body(i, 0);
      }
      return;
    }
    run(n_items, &call<Body>, &body);
  }

 private:
  using Call = void (*)(const void* body, std::int64_t item, int thread);

  template <typename Body>
  static void call(const void* body, std::int64_t item, int thread) {
    (*static_cast<const Body*>(body))(item, thread);
  }

  void run(std::int64_t n_items, Call function, const void* body);
  void work(int thread);
  void worker(int thread);
  bool has_items() const;

  // The job: written by the caller while no item of it can be taken.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  std::uint32_t n_items_ = 0;
  std::uint32_t job_ = 0;

  // Job number (high half) and items not yet taken (low half). An item belongs to whoever lowers
  // the count; the job number keeps a late worker from taking an item of another job.
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::uint32_t> n_done_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace tandem::cpu
