#include "model/cache/cache_layout.h"

#include <gtest/gtest.h>

namespace tandem::cache {
namespace {

using tensor::RowFormat;

// DeepSeek-V4-Flash: 2 window-only layers, then ratio 4 and 128 in turn. SOURCE: model.md 1.3.
CacheShape flash_shape(RowFormat kv_format) {
  CacheShape shape;
  shape.ratios = {0, 0};
  for (int i = 0; i < 20; ++i) {
    shape.ratios.push_back(4);
    shape.ratios.push_back(128);
  }
  shape.ratios.push_back(4);
  shape.kv_format = kv_format;
  shape.index_format = RowFormat::kBf16;
  return shape;
}

CacheLimits limits_of(std::int64_t context) {
  CacheLimits limits;
  limits.n_slots = 2;
  limits.max_context_tokens = context;
  limits.n_pages = 2 * pages_for(context);
  limits.draft_slack = 8;
  return limits;
}

TEST(CacheLayout, FlashGrowsBySpecifiedBytesPerToken) {
  // model.md 4.4: bf16 everything 6,880 B a token.
  const CacheLayout bf16 =
      CacheLayout::make(flash_shape(RowFormat::kBf16), limits_of(131072)).value();
  EXPECT_EQ(bf16.bytes_per_token(), 6880.0);
  // FP8 rows: 21 * 584 / 4 + 20 * 584 / 128 = 3157.25; bf16 index keys: 21 * 256 / 4 = 1344.
  const CacheLayout fp8 =
      CacheLayout::make(flash_shape(RowFormat::kFp8), limits_of(131072)).value();
  EXPECT_EQ(fp8.bytes_per_token(), 3157.25 + 1344.0);
}

TEST(CacheLayout, SnapshotIsWindowRowsPlusCarryRows) {
  // model.md 2.13: the carry is 21 * (4*512*2*4 + 4*128*2*4) = 430,080 bytes.
  const CacheLayout layout =
      CacheLayout::make(flash_shape(RowFormat::kFp8), limits_of(4096)).value();
  EXPECT_EQ(layout.snapshot_bytes(), std::int64_t{43} * 128 * 584 + 430080);
}

TEST(CacheLayout, RingsHoldTheReachPlusSlack) {
  CacheLimits limits = limits_of(4096);
  limits.draft_slack = 6;
  const CacheLayout layout = CacheLayout::make(flash_shape(RowFormat::kF32), limits).value();
  EXPECT_EQ(layout.window_ring_rows(), 136);
  EXPECT_EQ(layout.state_ring_rows(4), 16);
  EXPECT_EQ(layout.state_ring_rows(128), 136);
  EXPECT_EQ(CacheLayout::state_row_floats(4, 512), 2048);
  EXPECT_EQ(CacheLayout::state_row_floats(128, 512), 1024);
}

TEST(CacheLayout, MillionTokenSizesDoNotOverflow) {
  CacheLimits limits = limits_of(1048576);
  limits.n_pages = 8192 * 64;
  const CacheLayout layout = CacheLayout::make(flash_shape(RowFormat::kBf16), limits).value();
  EXPECT_EQ(layout.compressed_bytes(4), std::int64_t{8192} * 64 * 32 * 1024);
  EXPECT_GT(layout.total_bytes(), std::int64_t{400} << 30);
}

TEST(CacheLayout, BadSizesAreNamed) {
  CacheShape shape = flash_shape(RowFormat::kF32);
  shape.ratios[3] = 8;
  EXPECT_NE(CacheLayout::make(shape, limits_of(128)).status().message().find("layer 3"),
            std::string::npos);
  CacheLimits limits = limits_of(1024);
  limits.n_pages = 7;
  const Status status = CacheLayout::make(flash_shape(RowFormat::kF32), limits).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("at least 8 pages"), std::string::npos);
}

}  // namespace
}  // namespace tandem::cache
