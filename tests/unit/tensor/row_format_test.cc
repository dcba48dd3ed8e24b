#include "compute/tensor/row_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "compute/tensor/numeric_formats.h"

namespace tandem::tensor {
namespace {

constexpr std::uint8_t kPoison = 0xA5;

std::vector<float> random_row(std::uint32_t seed, float spread) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(kHeadDim);
  for (float& value : row) {
    value = normal(engine);
  }
  return row;
}

// What `native` numerics leaves in a KV row before it is stored. model.md 2.3.
std::vector<float> on_native_grid(std::vector<float> row) {
  for (int block = 0; block < kNopeDim; block += 64) {
    float amax = 0;
    for (int i = block; i < block + 64; ++i) {
      amax = std::max(amax, std::fabs(row[static_cast<std::size_t>(i)]));
    }
    const float scale = act_quant_scale(amax);
    for (int i = block; i < block + 64; ++i) {
      float& value = row[static_cast<std::size_t>(i)];
      value = e4m3_to_float(float_to_e4m3(std::clamp(value / scale, -448.0F, 448.0F))) * scale;
    }
  }
  for (int i = kNopeDim; i < kHeadDim; ++i) {
    row[static_cast<std::size_t>(i)] = round_bf16(row[static_cast<std::size_t>(i)]);
  }
  return row;
}

std::vector<float> through(RowFormat format, const std::vector<float>& row) {
  const auto bytes = static_cast<std::size_t>(row_bytes(format, kHeadDim));
  std::vector<std::uint8_t> stored(bytes + 8, kPoison);
  store_row(format, kHeadDim, row.data(), stored.data());
  for (std::size_t i = bytes; i < stored.size(); ++i) {
    EXPECT_EQ(stored[i], kPoison) << "written past the row";
  }
  std::vector<float> loaded(kHeadDim, NAN);
  load_row(format, kHeadDim, stored.data(), loaded.data());
  return loaded;
}

TEST(RowFormat, SizesAreThoseOfTheSpec) {
  EXPECT_EQ(row_bytes(RowFormat::kF32, kHeadDim), 2048);
  EXPECT_EQ(row_bytes(RowFormat::kBf16, kHeadDim), 1024);
  EXPECT_EQ(row_bytes(RowFormat::kBf16, kIndexDim), 256);
  EXPECT_EQ(row_bytes(RowFormat::kFp8, kHeadDim), 584);
}

TEST(RowFormat, F32KeepsEveryBit) {
  const std::vector<float> row = random_row(1, 3);
  EXPECT_EQ(through(RowFormat::kF32, row), row);
}

TEST(RowFormat, NativeRowsAreExactInBf16AndFp8) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const float spread = std::ldexp(1.0F, static_cast<int>(seed % 40) - 30);
    const std::vector<float> row = on_native_grid(random_row(seed, spread));
    ASSERT_EQ(through(RowFormat::kBf16, row), row) << seed;
    ASSERT_EQ(through(RowFormat::kFp8, row), row) << seed;
  }
}

// A block whose largest value rounds down to half of the range may get the next smaller scale when
// it is stored; the values must not change.
TEST(RowFormat, Fp8IsExactWhereTheStoredScaleIsSmaller) {
  std::vector<float> row(kHeadDim, 0.0F);
  row[0] = 224.0F + 1.0F;  // scale 1, rounds to 224
  row[1] = 0x1.8p-8F;
  const std::vector<float> grid = on_native_grid(row);
  ASSERT_EQ(grid[0], 224.0F);
  EXPECT_EQ(through(RowFormat::kFp8, grid), grid);
}

TEST(RowFormat, LossyRowsStayWithinHalfAStep) {
  const std::vector<float> row = random_row(7, 1);
  const std::vector<float> bf16 = through(RowFormat::kBf16, row);
  const std::vector<float> fp8 = through(RowFormat::kFp8, row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_NEAR(bf16[i], row[i], std::fabs(row[i]) * 0x1.0p-8F);
    const float fp8_step = i < kNopeDim ? 0x1.0p-4F : 0x1.0p-8F;
    EXPECT_NEAR(fp8[i], row[i], std::fabs(row[i]) * fp8_step + 0x1.0p-16F);
  }
}

}  // namespace
}  // namespace tandem::tensor
