// The emulation must find what a GPU would get wrong: or the parity tests on it prove nothing.
#include <gtest/gtest.h>

#include <vector>

#include "compute/cuda/platform.h"

namespace tandem::cuda {
namespace {

// Each thread reads what its neighbour wrote, with or without a barrier between.
template <bool kBarrier>
void neighbour_kernel(int* out) {
  TANDEM_DYNAMIC_SHARED(int, box);
  box[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kBarrier) {
    __syncthreads();
  }
  out[threadIdx.x] = box[(threadIdx.x + 1) % blockDim.x];
}

int wrong_neighbours(void (*kernel)(int*)) {
  int wrong = 0;
  for (int round = 0; round < 2; ++round) {  // both orders of threads
    std::vector<int> out(64, -1);
    launch(kernel, dim3(1), dim3(64), 64 * sizeof(int), nullptr, out.data());
    for (int i = 0; i < 64; ++i) {
      wrong += out[static_cast<std::size_t>(i)] != (i + 1) % 64 ? 1 : 0;
    }
  }
  return wrong;
}

TEST(Emulation, ShowsAMissingBarrier) {
  EXPECT_EQ(wrong_neighbours(neighbour_kernel<true>), 0);
  EXPECT_GT(wrong_neighbours(neighbour_kernel<false>), 0);
}

void shuffles_kernel(std::uint64_t* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const double up = __shfl_xor_sync(kFullWarp, static_cast<double>(lane), 5);
  const int from_three = __shfl_sync(kFullWarp, lane * 2, 3);
  const unsigned odd = __ballot_sync(kFullWarp, lane % 2);
  out[threadIdx.x] = static_cast<std::uint64_t>(up) | std::uint64_t{odd} << 16 |
                     static_cast<std::uint64_t>(from_three) << 48;
}

TEST(Emulation, ExchangesWithinAWarp) {
  std::vector<std::uint64_t> out(96);
  launch(shuffles_kernel, dim3(1), dim3(96), 0, nullptr, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i] & 0xFFFFU, (i % 32) ^ 5U);
    EXPECT_EQ(out[i] >> 16 & 0xFFFFFFFFU, 0xAAAAAAAAU);
    EXPECT_EQ(out[i] >> 48, 6U);
  }
}

void grid_kernel(int* counts) {
  atomicAdd(&counts[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x], 1);
}

TEST(Emulation, RunsEveryThreadOfEveryBlock) {
  std::vector<int> counts(2 * 3 * 4 + 1, 0);
  launch(grid_kernel, dim3(4, 3, 2), dim3(32), 0, nullptr, counts.data());
  EXPECT_EQ(counts.back(), 0);
  counts.pop_back();
  EXPECT_EQ(counts, std::vector<int>(24, 32));
}

void half_block_kernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  }
}

void half_warp_kernel() {
  if (threadIdx.x < 16) {
    __syncwarp();
  }
}

TEST(EmulationDeathTest, EndsAtBarriersThatSomeThreadsMiss) {
  EXPECT_DEATH(launch(half_block_kernel, dim3(1), dim3(64), 0, nullptr),
               "a block barrier that some threads");
  EXPECT_DEATH(launch(half_warp_kernel, dim3(1), dim3(32), 0, nullptr),
               "a warp operation that some lanes");
}

}  // namespace
}  // namespace tandem::cuda
