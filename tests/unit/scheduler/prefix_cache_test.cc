#include "engine/scheduler/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem::scheduler {
namespace {

constexpr std::int32_t kPage = 4;

std::vector<TokenId> tokens_from(TokenId first, std::size_t n) {
  std::vector<TokenId> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  // As a sequence does it: take pages, compute, make known, leave.
  std::optional<PrefixCache::Place> remember(const std::vector<TokenId>& tokens,
                                             Position position) {
    const auto pages = *pages_.acquire(position / kPage);
    const auto place = cache_.insert(tokens, position, pages);
    pages_.release(pages);
    return place;
  }

  PageLedger pages_{16};
  PrefixCache cache_{kPage, 3, pages_};
};

TEST_F(PrefixCacheTest, ResumesFromTheDeepestSnapshotBelowTheLimit) {
  const auto tokens = tokens_from(0, 20);
  ASSERT_TRUE(remember(tokens, 8).has_value());
  ASSERT_TRUE(remember(tokens, 16).has_value());
  EXPECT_EQ(pages_.n_used(), 4) << "the first two pages are known already";
  PrefixCache::Match match = cache_.match(tokens, 19);
  EXPECT_EQ(match.position, 16);
  EXPECT_EQ(match.pages.size(), 4U);
  match = cache_.match(tokens, 15);
  EXPECT_EQ(match.position, 8);
  EXPECT_EQ(match.shared_position, 12) << "known, but without a snapshot within the limit";
  auto other = tokens;
  other[5] = 99;
  match = cache_.match(other, 19);
  EXPECT_EQ(match.position, 0);
  EXPECT_EQ(match.snapshot, -1);
  EXPECT_EQ(match.shared_position, 4);
  EXPECT_FALSE(remember(tokens, 16).has_value()) << "there is a snapshot already";
  EXPECT_EQ(pages_.n_used(), 4);
}

TEST_F(PrefixCacheTest, LeastRecentlyUsedGoesFirstAndSharedPrefixesLast) {
  const auto system = tokens_from(0, 5);
  ASSERT_TRUE(remember(system, 4).has_value());
  for (int i = 0; i < 3; ++i) {
    cache_.count_hit(cache_.match(system, 5));
  }
  const auto a = tokens_from(100, 9);
  const auto b = tokens_from(200, 9);
  const auto c = tokens_from(300, 9);
  ASSERT_TRUE(remember(a, 8).has_value());
  ASSERT_TRUE(remember(b, 8).has_value());
  EXPECT_EQ(cache_.match(a, 9).position, 8);
  ASSERT_TRUE(remember(c, 8).has_value());
  EXPECT_EQ(cache_.match(b, 9).position, 0) << "b was used least recently";
  EXPECT_EQ(cache_.match(a, 9).position, 8);
  EXPECT_EQ(cache_.match(c, 9).position, 8);
  EXPECT_EQ(cache_.match(system, 5).position, 4);
  EXPECT_EQ(cache_.n_snapshots_used(), 3);
  EXPECT_EQ(pages_.n_used(), 5);
}

TEST_F(PrefixCacheTest, MakesRoomButNotWithPagesInUse) {
  const auto a = tokens_from(100, 9);
  const auto b = tokens_from(200, 9);
  ASSERT_TRUE(remember(a, 8).has_value());
  ASSERT_TRUE(remember(b, 8).has_value());
  const PrefixCache::Match in_use = cache_.match(a, 9);
  for (const PageId page : in_use.pages) {
    pages_.retain(page);
  }
  EXPECT_TRUE(cache_.make_free(14));
  EXPECT_EQ(cache_.match(b, 9).position, 0);
  EXPECT_EQ(cache_.match(a, 9).position, 8);
  EXPECT_FALSE(cache_.make_free(15));
  pages_.release(in_use.pages);
  EXPECT_TRUE(cache_.make_free(16));
  EXPECT_EQ(cache_.n_nodes(), 0);
  EXPECT_EQ(cache_.n_snapshots_used(), 0);
}

TEST_F(PrefixCacheTest, DropsWhatNobodyResumedFrom) {
  const auto a = tokens_from(100, 9);
  const auto place = remember(a, 8);
  cache_.count_hit(cache_.match(a, 9));
  cache_.drop_if_unused(*place);
  EXPECT_EQ(cache_.match(a, 9).position, 8) << "it was used";
  const auto other = remember(tokens_from(200, 9), 4);
  cache_.drop_if_unused(*other);
  cache_.drop_if_unused(*other);
  EXPECT_EQ(cache_.n_nodes(), 2);
  cache_.drop_if_unused({});
}

TEST_F(PrefixCacheTest, OnePlaceIsEnoughToWork) {
  PrefixCache small(kPage, 1, pages_);
  const auto tokens = tokens_from(0, 20);
  const auto pages = *pages_.acquire(4);
  ASSERT_TRUE(small.insert(tokens, 8, pages).has_value());
  ASSERT_TRUE(small.insert(tokens, 16, pages).has_value()) << "takes the place of its own parent";
  EXPECT_EQ(small.match(tokens, 20).position, 16);
  ASSERT_TRUE(small.insert(tokens, 4, pages).has_value()) << "the path above must survive";
  EXPECT_EQ(small.match(tokens, 20).position, 4);
  pages_.release(pages);
}

}  // namespace
}  // namespace tandem::scheduler
