#include <gtest/gtest.h>

#include "compute/cuda/available_memory.h"
#include "compute/cuda/cuda_backend.h"
#include "compute/cuda/stuck_clock.h"

namespace tandem::cuda {
namespace {

constexpr const char* kMeminfo =
    "MemTotal:       125829120 kB\nMemFree:         2097152 kB\nMemAvailable:   104857600 kB\n";

TEST(AvailableMemory, OnUnifiedMemoryCountsWhatTheSystemCanFree) {
  EXPECT_EQ(mem_available(kMeminfo), std::int64_t{100} << 30);
  EXPECT_EQ(available_memory(true, 5, kMeminfo), std::int64_t{100} << 30);
  EXPECT_EQ(available_memory(false, 5, kMeminfo), 5);
}

TEST(AvailableMemory, FallsBackToTheDriver) {
  for (const char* text : {"", "MemFree: 1 kB\n", "MemAvailable: x kB\n", "MemAvailable: 12 MB\n",
                           "MemAvailable:", "xMemAvailable: 3 kB\n"}) {
    EXPECT_EQ(mem_available(text), -1) << text;
    EXPECT_EQ(available_memory(true, 7, text), 7) << text;
  }
}

TEST(StuckClock, TellsAStuckStepFromALongOne) {
  using std::chrono::milliseconds;
  const StuckClock::Time begin{};
  StuckClock clock(milliseconds(100), begin, 7);
  EXPECT_FALSE(clock.expired(begin + milliseconds(99), 7));
  EXPECT_FALSE(clock.expired(begin + milliseconds(150), 8));  // moved on
  EXPECT_FALSE(clock.expired(begin + milliseconds(249), 8));
  EXPECT_TRUE(clock.expired(begin + milliseconds(250), 8));
  EXPECT_FALSE(clock.expired(begin + milliseconds(900), 8));  // says it once
}

#ifndef TANDEM_HAS_CUDA
TEST(CudaBackend, SaysThatThisBuildHasNone) {
  const auto backend = open_cuda_backend({});
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.status().code(), StatusCode::kUnimplemented);
  EXPECT_NE(backend.status().message().find("built without CUDA"), std::string::npos);
}
#endif

}  // namespace
}  // namespace tandem::cuda
