#include "compute/cuda/emulation/fiber.h"

#include <cstdint>

namespace tandem::cuda::emulation {
namespace {

void ensure_stack(Fiber& fiber, std::size_t bytes) {
  if (fiber.stack == nullptr) {
    fiber.stack = std::unique_ptr<unsigned char[]>(new unsigned char[bytes]);
  }
}

}  // namespace

#ifdef __x86_64__

// Pushes the registers that a call preserves, changes stacks, pops them from the other one.
extern "C" void tandem_switch_stack(void** save, void* load);
asm(R"(
.text
.p2align 4
.globl tandem_switch_stack
.type tandem_switch_stack, @function
tandem_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tandem_switch_stack, .-tandem_switch_stack
)");

void start_fiber(Fiber& fiber, std::size_t stack_bytes, void (*entry)()) {
  ensure_stack(fiber, stack_bytes);
  auto top =
      reinterpret_cast<std::uintptr_t>(fiber.stack.get() + stack_bytes) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<std::uintptr_t*>(top);
  *--words = 0;  // a return address that is never used; keeps the stack aligned as after a call
  *--words = reinterpret_cast<std::uintptr_t>(entry);
  for (int i = 0; i < 6; ++i) {
    *--words = 0;
  }
  fiber.stack_pointer = words;
}

void switch_fiber(Fiber& from, Fiber& to) {
  tandem_switch_stack(&from.stack_pointer, to.stack_pointer);
}

#else

void start_fiber(Fiber& fiber, std::size_t stack_bytes, void (*entry)()) {
  ensure_stack(fiber, stack_bytes);
  ::getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  ::makecontext(&fiber.context, entry, 0);
}

void switch_fiber(Fiber& from, Fiber& to) {
  ::swapcontext(&from.context, &to.context);
}

#endif

}  // namespace tandem::cuda::emulation
