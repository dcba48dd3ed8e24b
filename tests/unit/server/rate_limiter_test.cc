#include "serving/server/rate_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::server {
namespace {

using ::testing::HasSubstr;

TEST(RateLimiter, RequestsComeBackEvenly) {
  ManualClock clock;
  RateLimiter limiter(clock);
  const KeyOwner anna{"anna", 6, 0};
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(limiter.admit(anna).has_value()) << i;
  }
  const auto error = limiter.admit(anna);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->http_status, 429);
  EXPECT_EQ(error->code, "rate_limit_exceeded");
  EXPECT_EQ(error->retry_after_s, 10);
  EXPECT_THAT(error->message, HasSubstr("try again in 10s"));
  clock.advance_us(9'900'000);
  EXPECT_TRUE(limiter.admit(anna).has_value());
  clock.advance_us(100'000);
  EXPECT_FALSE(limiter.admit(anna).has_value());
  EXPECT_TRUE(limiter.admit_again("anna").has_value());
  clock.advance_us(3'600'000'000);
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(limiter.admit(anna).has_value());
  }
  EXPECT_TRUE(limiter.admit(anna).has_value());  // a pause saves up one minute, not an hour
}

TEST(RateLimiter, TokensAreChargedAfterwardsAndMayOverdraw) {
  ManualClock clock;
  RateLimiter limiter(clock);
  const KeyOwner anna{"anna", 0, 600};
  EXPECT_FALSE(limiter.admit(anna).has_value());
  limiter.charge("anna", 1'199);
  const auto error = limiter.admit(anna);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->retry_after_s, 60);
  EXPECT_THAT(error->message, HasSubstr("600 tokens per minute"));
  clock.advance_us(60'000'000);
  EXPECT_FALSE(limiter.admit(anna).has_value());
}

TEST(RateLimiter, KeysAreApartAndChangedLimitsCount) {
  ManualClock clock;
  RateLimiter limiter(clock);
  EXPECT_FALSE(limiter.admit({"anna", 1, 0}).has_value());
  EXPECT_TRUE(limiter.admit({"anna", 1, 0}).has_value());
  EXPECT_FALSE(limiter.admit({"bert", 1, 0}).has_value());
  EXPECT_FALSE(limiter.admit({"anna", 5, 0}).has_value());
  EXPECT_FALSE(limiter.admit({"anna", 0, 0}).has_value());
  EXPECT_FALSE(limiter.admit_again("anna").has_value());
  limiter.charge("nobody", 5);
}

}  // namespace
}  // namespace tandem::server
