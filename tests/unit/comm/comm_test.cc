#include <gtest/gtest.h>

#include <array>

#include "compute/comm/backoff.h"
#include "compute/comm/communicator.h"

namespace tandem::comm {
namespace {

using std::chrono::microseconds;

TEST(SingleCommunicator, CollectivesKeepTheValues) {
  const auto comm = make_single_communicator();
  std::array<float, 2> values{1.5F, -2.0F};
  comm->all_reduce_sum(values);
  EXPECT_EQ(values, (std::array<float, 2>{1.5F, -2.0F}));
  std::array<float, 2> out{};
  comm->all_gather(values, out);
  EXPECT_EQ(out, values);
  std::vector<std::uint8_t> bytes{1, 2, 3};
  comm->broadcast(bytes);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{1, 2, 3}));
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->size(), 1);
}

TEST(Backoff, SpinsFirstThenSleepsLongerButNeverLong) {
  EXPECT_EQ(Backoff::sleep_after(microseconds(100)).count(), 0);
  EXPECT_GT(Backoff::sleep_after(microseconds(10'000)).count(), 0);
  EXPECT_LE(Backoff::sleep_after(microseconds(10'000)).count(), 1'000);
  EXPECT_LE(Backoff::sleep_after(std::chrono::hours(1)).count(), 5'000);
}

}  // namespace
}  // namespace tandem::comm
