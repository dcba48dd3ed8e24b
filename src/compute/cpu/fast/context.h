// Context: what the fast ops share - numerics, threads and working memory that grows to the largest
// step and stays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compute/cpu/fast/expert_plan.h"
#include "compute/cpu/fast/scratch.h"
#include "compute/cpu/fast/simd_matrix.h"
#include "compute/cpu/fast/thread_pool.h"
#include "compute/kernels/kernels.h"

namespace tandem::cpu::fast {

using kernels::Numerics;

// Working memory of one thread; the meaning of each buffer is local to an op.
struct ThreadScratch {
  MatrixScratch matrix;
  Scratch first;
  Scratch second;
  Scratch third;
  std::vector<const float*> pointers;
  std::vector<const float*> more_pointers;
};

struct Context {
  Context(Numerics chosen, int n_threads) : numerics(chosen), pool(n_threads) {
    for (int i = 0; i < n_threads; ++i) {
      threads.push_back(std::make_unique<ThreadScratch>());
    }
  }

  bool native() const { return numerics == Numerics::kNative; }

  ThreadScratch& scratch(int thread) { return *threads[static_cast<std::size_t>(thread)]; }

  // pool.for_each, or the caller alone where waking a thread costs more than the work: `work` is
  // about the multiply-adds of one item.
  template <typename Body>
  void for_each(std::int64_t n_items, std::int64_t work, const Body& body) {
    constexpr std::int64_t kWorthWaking = 60000;
    if (n_items * work < kWorthWaking) {
      for (std::int64_t i = 0; i < n_items; ++i) {
        body(i, 0);
      }
      return;
    }
    pool.for_each(n_items, body);
  }

  Numerics numerics;
  ThreadPool pool;
  std::vector<std::unique_ptr<ThreadScratch>> threads;

  Scratch inputs;                        // packed rows of x
  std::vector<const float*> input_rows;  // where each packed row lies
  Scratch results;                       // of an op's first half
  Scratch inputs_b;                      // packed rows of its second half
  std::vector<const float*> input_rows_b;
  ExpertPlan expert_plan;
};

}  // namespace tandem::cpu::fast
