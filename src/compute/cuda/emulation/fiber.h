// Fiber: a stack of its own that runs until it switches back. Only the saved registers differ by
// processor; a system call on every switch, as ucontext makes, would cost a hundred times more.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <memory>

namespace tandem::cuda::emulation {

struct Fiber {
#ifdef __x86_64__
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
  std::unique_ptr<unsigned char[]> stack;
};

// Prepares `fiber` to run `entry`, which must never return. Its stack is kept for the next start.
void start_fiber(Fiber& fiber, std::size_t stack_bytes, void (*entry)());

// Saves the running fiber in `from` and continues `to`.
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace tandem::cuda::emulation
