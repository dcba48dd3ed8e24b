// A host that runs CUDA kernels: blocks one after the other, each thread of a block as a fiber that
// gives way at barriers and warp operations. It is for tests: it proves index maths, barriers and
// warp exchanges, not speed and not the memory model.
//
// What it finds beyond wrong results: a barrier or shuffle that some threads of a block or warp do
// not reach (it ends the program with the place), and missing barriers, because every other launch
// runs blocks and threads in reverse order. Dynamic shared memory starts as NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

using cudaStream_t = void*;

// The thread that runs now.
extern dim3 threadIdx;
extern dim3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace tandem::cuda::emulation {

// Runs `body` once for every thread of the grid. Several host threads may call it: one grid runs at
// a time.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& body);

// While a list is set, launches and device copies are added to it instead of being run.
using Recording = std::vector<std::function<void()>>;
void set_recording(Recording* recording);
Recording* recording();

// Called before each grid until it is removed.
void add_launch_hook(const void* owner, std::function<void()> hook);
void remove_launch_hook(const void* owner);

// Memory of the running block, poisoned before the block starts.
void* dynamic_shared();

void block_barrier();

// Makes 8 bytes of every lane of the warp visible to all its lanes; returns the 32 entries, valid
// until the lane's next exchange.
const std::uint64_t* exchange(std::uint64_t mine);

template <typename T>
T shuffle(T value, int source) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const std::uint64_t* lanes = exchange(bits);
  T result;
  std::memcpy(&result, &lanes[source & 31], sizeof(T));
  return result;
}

inline int lane() {
  return static_cast<int>(threadIdx.x % 32);
}

}  // namespace tandem::cuda::emulation

inline void __syncthreads() {
  tandem::cuda::emulation::block_barrier();
}

inline void __syncwarp() {
  tandem::cuda::emulation::exchange(0);
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return tandem::cuda::emulation::shuffle(value, tandem::cuda::emulation::lane() ^ mask);
}

template <typename T>
T __shfl_sync(unsigned, T value, int source) {
  return tandem::cuda::emulation::shuffle(value, source);
}

template <typename T>
T __shfl_up_sync(unsigned, T value, int delta) {
  const int lane = tandem::cuda::emulation::lane();
  return tandem::cuda::emulation::shuffle(value, lane >= delta ? lane - delta : lane);
}

inline unsigned __ballot_sync(unsigned, int predicate) {
  const std::uint64_t* lanes =
      tandem::cuda::emulation::exchange(predicate != 0 ? std::uint64_t{1} : std::uint64_t{0});
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) {
    bits |= static_cast<unsigned>(lanes[i]) << i;
  }
  return bits;
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}

template <typename T>
T atomicAdd(T* place, T value) {
  const T old = *place;
  *place = static_cast<T>(old + value);
  return old;
}
