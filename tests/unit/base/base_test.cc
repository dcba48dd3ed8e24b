#include <gtest/gtest.h>

#include "foundation/base/clock.h"
#include "foundation/base/random.h"
#include "foundation/base/status.h"

namespace tandem {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) {
    return invalid_argument("{} is odd", x);
  }
  return x / 2;
}

Result<int> quarter(int x) {
  TANDEM_ASSIGN(const int h, half(x));
  return half(h);
}

TEST(Status, CarriesCodeMessageAndContext) {
  const Status status = not_found("no file {}", "a.txt").with_context("loading");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.to_string(), "NOT_FOUND: loading: no file a.txt");
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "3 is odd");
}

TEST(ResultDeathTest, ValueOfAnErrorAborts) {
  EXPECT_DEATH(static_cast<void>(half(1).value()), "1 is odd");
}

TEST(Random, IsReproducibleAndBounded) {
  Random a(7);
  Random b(7);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.next(), b.next());
    EXPECT_LT(a.below(13), 13U);
    b.next();
    const double u = a.uniform();
    b.next();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

TEST(ManualClock, MovesOnlyByHand) {
  ManualClock clock;
  clock.advance_us(1'500'000);
  EXPECT_EQ(clock.now_us(), 1'500'000);
  EXPECT_EQ(clock.unix_seconds(), 1'700'000'001);
}

}  // namespace
}  // namespace tandem
