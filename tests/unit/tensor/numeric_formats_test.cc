// Every code of every format, and the golden scales of model.md Appendix A.
#include "compute/tensor/numeric_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem::tensor {
namespace {

TEST(E4m3, EveryFiniteCodeRoundTrips) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(e4m3_to_float(byte)));
      continue;
    }
    EXPECT_EQ(float_to_e4m3(e4m3_to_float(byte)), byte) << code;
  }
  EXPECT_EQ(e4m3_to_float(0x7E), 448.0F);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1.0p-9F);
  EXPECT_EQ(e4m3_to_float(0x08), 0x1.0p-6F);
  EXPECT_EQ(e4m3_to_float(0xB8), -1.0F);
}

TEST(E4m3, RoundsToTheNearestTiesToEven) {
  for (int code = 0; code < 0x7E; ++code) {
    const float low = e4m3_to_float(static_cast<std::uint8_t>(code));
    const float high = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
    const float middle = (low + high) / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(float_to_e4m3(middle), even) << code;
    EXPECT_EQ(float_to_e4m3(std::nextafter(middle, low)), code) << code;
    EXPECT_EQ(float_to_e4m3(std::nextafter(middle, high)), code + 1) << code;
    EXPECT_EQ(float_to_e4m3(-middle), even | 0x80) << code;
  }
}

TEST(E2m1, EveryCodeRoundTripsAndTiesGoToEven) {
  const float values[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    const float value = e2m1_to_float(static_cast<std::uint8_t>(code));
    EXPECT_EQ(value, code < 8 ? values[code] : -values[code - 8]);
    EXPECT_EQ(float_to_e2m1(value), code == 8 ? 0 : code);
  }
  // model.md 2.0: .25->0, .75->1, 1.25->1, 1.75->2, 2.5->2, 3.5->4, 5->4.
  const float ties[7][2] = {{0.25F, 0}, {0.75F, 1}, {1.25F, 1}, {1.75F, 2},
                            {2.5F, 2},  {3.5F, 4},  {5, 4}};
  for (const auto& tie : ties) {
    EXPECT_EQ(e2m1_to_float(float_to_e2m1(tie[0])), tie[1]) << tie[0];
    EXPECT_EQ(e2m1_to_float(float_to_e2m1(-tie[0])), -tie[1]) << tie[0];
  }
  EXPECT_EQ(e2m1_to_float(float_to_e2m1(100)), 6.0F);
}

TEST(Bf16, RoundsToTheNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7F80U; ++bits) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(float_to_bf16(value), bits);
    ASSERT_EQ(float_to_bf16(-value), bits | 0x8000U);
  }
  EXPECT_EQ(round_bf16(1.0F + 0x1.0p-8F), 1.0F);
  EXPECT_EQ(round_bf16(1.0F + 0x1.8p-7F), 1.0F + 0x1.0p-6F);
  EXPECT_EQ(round_bf16(std::nextafter(1.0F + 0x1.0p-8F, 2.0F)), 1.0F + 0x1.0p-7F);
  EXPECT_TRUE(std::isnan(round_bf16(std::numeric_limits<float>::quiet_NaN())));
}

TEST(E8m0, IsAPowerOfTwo) {
  for (int byte = 0; byte < 255; ++byte) {
    EXPECT_EQ(e8m0_to_float(static_cast<std::uint8_t>(byte)), std::ldexp(1.0F, byte - 127));
  }
}

TEST(Pow2Up, IsExactAroundPowersOfTwo) {
  for (int e = -120; e < 120; ++e) {
    const float power = std::ldexp(1.0F, e);
    EXPECT_EQ(pow2_up(power), power);
    EXPECT_EQ(pow2_up(std::nextafter(power, 2 * power)), 2 * power);
    EXPECT_EQ(pow2_up(std::nextafter(power, 0.0F)), power);
  }
}

TEST(ActQuantScale, MatchesAppendixA) {
  EXPECT_EQ(act_quant_scale(0), 0x1.0p-22F);
  EXPECT_EQ(act_quant_scale(1e-5F), 0x1.0p-22F);
  EXPECT_EQ(act_quant_scale(0.1F), 0x1.0p-12F);
  EXPECT_EQ(act_quant_scale(1), 0x1.0p-8F);
  EXPECT_EQ(act_quant_scale(3.5F), 0x1.0p-7F);
  EXPECT_EQ(act_quant_scale(448), 1.0F);
  EXPECT_EQ(act_quant_scale(449), 2.0F);
  EXPECT_EQ(act_quant_scale(896), 2.0F);
  EXPECT_EQ(act_quant_scale(897), 4.0F);
}

TEST(Fp4Scale, MatchesAppendixA) {
  EXPECT_EQ(fp4_scale(0), 0x1.0p-126F);
  EXPECT_EQ(fp4_scale(0.1F), 0x1.0p-5F);
  EXPECT_EQ(fp4_scale(1), 0x1.0p-2F);
  EXPECT_EQ(fp4_scale(6), 1.0F);
  EXPECT_EQ(fp4_scale(6.01F), 2.0F);
  EXPECT_EQ(fp4_scale(12), 2.0F);
  EXPECT_EQ(fp4_scale(100), 32.0F);
}

}  // namespace
}  // namespace tandem::tensor
