// The parts of kernels that are plain functions, against their definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "compute/cuda/fragments.h"
#include "compute/cuda/radix_select.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::cuda {
namespace {

TEST(ScoreKey, KeepsTheOrderOfFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rising = {-inf, -3e38F, -1.0F, -1e-40F, 0.0F, 1e-40F, 1.0F, 2.5F, inf};
  for (std::size_t i = 1; i < rising.size(); ++i) {
    EXPECT_LT(score_key(rising[i - 1]), score_key(rising[i])) << rising[i];
  }
  EXPECT_EQ(score_key(-0.0F), score_key(0.0F));
  EXPECT_LT(score_key(std::numeric_limits<float>::quiet_NaN()), score_key(-inf));
}

// Four passes over random scores with many ties, against a full sort.
TEST(RadixSelect, FindsTheThresholdOfASort) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(static_cast<std::size_t>(1 + random() % 300));
    for (float& score : scores) {
      score = static_cast<float>(static_cast<int>(random() % 41) - 20) / 8.0F;
    }
    const auto top_k = static_cast<std::int32_t>(1 + random() % scores.size());
    RadixState state{0, 0, top_k};
    for (int pass = 0; pass < 4; ++pass) {
      std::int32_t counts[kRadixBins] = {};
      for (const float score : scores) {
        const std::uint32_t key = score_key(score);
        if ((key & state.mask) == state.prefix) {
          ++counts[(key >> radix_shift(pass)) % kRadixBins];
        }
      }
      state = next_radix_state(state, pass, counts);
    }
    std::vector<float> sorted = scores;
    std::sort(sorted.rbegin(), sorted.rend());
    const float last = sorted[static_cast<std::size_t>(top_k - 1)];
    EXPECT_EQ(state.prefix, score_key(last));
    const auto better =
        std::count_if(scores.begin(), scores.end(), [last](float score) { return score > last; });
    EXPECT_EQ(state.wanted, top_k - better);
  }
}

float half_of(Pair pair, int half) {
  return tensor::bf16_to_float(static_cast<std::uint16_t>(pair >> (16 * half)));
}

// Every code at every place of a word, with scales from tiny to the largest allowed.
TEST(Fragments, DecodeEveryFp8Code) {
  for (const int scale : {60, 100, 119, 127, 168}) {
    const auto byte = static_cast<std::uint8_t>(scale);
    const float factor = half_of(fp8_factor(byte), 0);
    EXPECT_EQ(factor, half_of(fp8_factor(byte), 1));
    for (std::uint32_t code = 0; code < 256; ++code) {
      if ((code & 0x7FU) == 0x7FU) {
        continue;  // NaN never is a weight
      }
      for (int place = 0; place < 4; ++place) {
        Pair pairs[2];
        split_fp8(code << (8 * place), pairs);
        const float raw = half_of(pairs[place % 2], place / 2);
        const float value = raw * factor * kSumScale;
        EXPECT_EQ(value, tensor::e4m3_to_float(static_cast<std::uint8_t>(code)) *
                             tensor::e8m0_to_float(byte));
        EXPECT_EQ(tensor::round_bf16(raw * factor), raw * factor) << "not exact";
      }
    }
  }
}

TEST(Fragments, DecodeEveryFp4Code) {
  for (const int scale : {60, 100, 119, 127, 168}) {
    const auto byte = static_cast<std::uint8_t>(scale);
    const float factor = half_of(fp4_factor(byte), 0);
    for (std::uint32_t code = 0; code < 16; ++code) {
      for (int place = 0; place < 8; ++place) {
        Pair pairs[4];
        split_fp4(code << (4 * place), pairs);
        const float raw = half_of(pairs[place % 4], place / 4);
        EXPECT_EQ(raw * factor * kSumScale, tensor::e2m1_to_float(static_cast<std::uint8_t>(code)) *
                                                tensor::e8m0_to_float(byte));
        EXPECT_EQ(tensor::round_bf16(raw * factor), raw * factor) << "not exact";
      }
    }
  }
}

TEST(Fragments, PackedOrderKeepsEveryValueInItsBlock) {
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kFp8, WeightFormat::kFp4}) {
    const std::int64_t n = 3 * k_block(format);
    std::vector<bool> taken(static_cast<std::size_t>(n), false);
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t place = packed_place(format, k);
      ASSERT_EQ(place / k_block(format), k / k_block(format));
      ASSERT_FALSE(taken[static_cast<std::size_t>(place)]);
      taken[static_cast<std::size_t>(place)] = true;
    }
  }
}

TEST(Fragments, PartsCoverAllBlocksInOrder) {
  for (int n = 0; n < 40; ++n) {
    int next = 0;
    for (int part = 0; part < kParts; ++part) {
      EXPECT_EQ(part_range(n, part).first, next);
      next = part_range(n, part).last;
    }
    EXPECT_EQ(next, n);
  }
}

}  // namespace
}  // namespace tandem::cuda
