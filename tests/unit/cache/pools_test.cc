#include "model/cache/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "foundation/base/random.h"

namespace tandem::cache {
namespace {

TEST(PagePool, GivesAllOrNothing) {
  PagePool pool(3);
  EXPECT_THAT(pool.acquire(2).value(), testing::ElementsAre(0, 1));
  EXPECT_FALSE(pool.acquire(2).has_value());
  EXPECT_EQ(pool.n_free(), 1);
}

TEST(PagePool, SharedPageIsFreeAfterItsLastUser) {
  PagePool pool(2);
  const std::vector<PageId> pages = pool.acquire(1).value();
  pool.retain(pages);
  pool.release(pages);
  EXPECT_EQ(pool.n_used(), 1);
  pool.release(pages);
  EXPECT_EQ(pool.n_used(), 0);
  EXPECT_DEATH(pool.release(pages), "free page 0");
}

TEST(PagePool, RandomUseNeverLosesOrDoublesAPage) {
  constexpr std::uint64_t kSeed = 7;
  Random random(kSeed);
  PagePool pool(17);
  std::vector<PageId> held;  // one entry per reference
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t choice = random.below(3);
    if (choice == 0) {
      const auto got = pool.acquire(static_cast<std::int64_t>(random.below(4)));
      if (got.has_value()) {
        held.insert(held.end(), got->begin(), got->end());
      }
    } else if (!held.empty()) {
      const std::size_t i = random.below(held.size());
      const PageId page = held[i];
      if (choice == 1) {
        pool.retain({&page, 1});
        held.push_back(page);
      } else {
        pool.release({&page, 1});
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    const std::set<PageId> unique(held.begin(), held.end());
    ASSERT_EQ(pool.n_used(), static_cast<std::int64_t>(unique.size())) << "seed " << kSeed;
  }
}

TEST(SlotPool, ReusesReleasedSlots) {
  SlotPool pool(2);
  EXPECT_EQ(pool.acquire(), 0);
  EXPECT_EQ(pool.acquire(), 1);
  EXPECT_EQ(pool.acquire(), std::nullopt);
  pool.release(0);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_EQ(pool.acquire(), 0);
  pool.release(1);
  EXPECT_DEATH(pool.release(1), "slot 1");
}

}  // namespace
}  // namespace tandem::cache
