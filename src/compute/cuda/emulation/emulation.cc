#include "compute/cuda/emulation/emulation.h"

#include <ucontext.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "compute/cuda/emulation/fiber.h"
#include "foundation/base/check.h"

dim3 threadIdx;
dim3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace tandem::cuda::emulation {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10;
constexpr unsigned kLanes = 32;

enum class State { kReady, kAtWarp, kAtBlock, kDone };

struct Thread {
  Fiber fiber;
  State state = State::kReady;
  unsigned n_exchanges = 0;
  dim3 index;
};

// Two sets of slots: a lane may write for its next exchange while others still read this one.
struct Warp {
  std::uint64_t slots[2][kLanes];
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::uint32_t> shared;
  const std::function<void()>* body = nullptr;
  Fiber scheduler;
  Thread* running = nullptr;
  bool reverse = false;
};

Block block;
thread_local Recording* current_recording = nullptr;
std::mutex mutex;  // one grid, or one change of hooks, at a time
std::map<const void*, std::function<void()>> launch_hooks;

void wait_as(State state) {
  block.running->state = state;
  switch_fiber(block.running->fiber, block.scheduler);
}

void thread_main() {
  (*block.body)();
  wait_as(State::kDone);
}

void resume(Thread& thread) {
  block.running = &thread;
  threadIdx = thread.index;
  switch_fiber(block.scheduler, thread.fiber);
}

// Runs a warp until all its threads are done or at the block's barrier.
void run_warp(Thread* lanes, std::size_t n) {
  while (true) {
    std::size_t at_warp = 0;
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Thread& thread = lanes[block.reverse ? n - 1 - i : i];
      if (thread.state == State::kReady) {
        resume(thread);
      }
      at_warp += thread.state == State::kAtWarp ? 1U : 0U;
      waiting += thread.state == State::kAtBlock ? 1U : 0U;
    }
    if (at_warp == 0) {
      return;
    }
    TANDEM_CHECK(at_warp == n, "a warp operation that some lanes of the warp do not reach");
    TANDEM_CHECK(waiting == 0, "a warp operation beside a block barrier");
    for (std::size_t i = 0; i < n; ++i) {
      lanes[i].state = State::kReady;
    }
  }
}

void run_block() {
  const std::size_t n = block.threads.size();
  const std::size_t n_warps = block.warps.size();
  while (true) {
    for (std::size_t i = 0; i < n_warps; ++i) {
      const std::size_t first = (block.reverse ? n_warps - 1 - i : i) * kLanes;
      run_warp(&block.threads[first], first + kLanes < n ? kLanes : n - first);
    }
    std::size_t waiting = 0;
    for (Thread& thread : block.threads) {
      waiting += thread.state == State::kAtBlock ? 1U : 0U;
    }
    if (waiting == 0) {
      return;
    }
    TANDEM_CHECK(waiting == n, "a block barrier that some threads of the block do not reach");
    for (Thread& thread : block.threads) {
      thread.state = State::kReady;
    }
  }
}

void start_block(dim3 size) {
  const std::size_t n = std::size_t{size.x} * size.y * size.z;
  TANDEM_CHECK(n <= 1024 && n % kLanes == 0, "blocks here are whole warps, at most 1024 threads");
  block.threads.resize(n);
  block.warps.resize(n / kLanes);
  std::size_t i = 0;
  for (unsigned z = 0; z < size.z; ++z) {
    for (unsigned y = 0; y < size.y; ++y) {
      for (unsigned x = 0; x < size.x; ++x, ++i) {
        Thread& thread = block.threads[i];
        thread.index = dim3(x, y, z);
        thread.state = State::kReady;
        thread.n_exchanges = 0;
        start_fiber(thread.fiber, kStackBytes, thread_main);
      }
    }
  }
  for (std::uint32_t& word : block.shared) {
    word = 0x7FC00000U;
  }
}

}  // namespace

void run_grid(dim3 grid, dim3 size, std::size_t shared_bytes, const std::function<void()>& body) {
  const std::lock_guard<std::mutex> lock(mutex);
  TANDEM_CHECK(shared_bytes <= 99 * 1024, "more shared memory than a GB10 block may have");
  TANDEM_CHECK(grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.y < 65536 && grid.z < 65536,
               "a grid that no GPU accepts");
  block.shared.resize(shared_bytes / 4 + 1);
  block.body = &body;
  gridDim = grid;
  blockDim = size;
  for (const auto& [owner, hook] : launch_hooks) {
    hook();
  }
  const std::uint64_t n_blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  for (std::uint64_t i = 0; i < n_blocks; ++i) {
    const std::uint64_t b = block.reverse ? n_blocks - 1 - i : i;
    blockIdx = dim3(static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                    static_cast<unsigned>(b / grid.x / grid.y));
    start_block(size);
    run_block();
  }
  block.reverse = !block.reverse;
}

void add_launch_hook(const void* owner, std::function<void()> hook) {
  const std::lock_guard<std::mutex> lock(mutex);
  launch_hooks[owner] = std::move(hook);
}

void remove_launch_hook(const void* owner) {
  const std::lock_guard<std::mutex> lock(mutex);
  launch_hooks.erase(owner);
}

void set_recording(Recording* list) {
  current_recording = list;
}

Recording* recording() {
  return current_recording;
}

void* dynamic_shared() {
  return block.shared.data();
}

void block_barrier() {
  wait_as(State::kAtBlock);
}

const std::uint64_t* exchange(std::uint64_t mine) {
  Thread& thread = *block.running;
  const std::size_t number = static_cast<std::size_t>(&thread - block.threads.data());
  std::uint64_t* slots = block.warps[number / kLanes].slots[thread.n_exchanges++ % 2];
  slots[number % kLanes] = mine;
  wait_as(State::kAtWarp);
  return slots;
}

}  // namespace tandem::cuda::emulation
