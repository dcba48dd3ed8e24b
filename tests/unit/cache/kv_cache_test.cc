#include "model/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace tandem::cache {
namespace {

using tensor::RowFormat;

CacheLayout small_layout() {
  CacheShape shape;
  shape.ratios = {0, 4, 128};
  shape.n_draft_layers = 1;
  shape.kv_format = RowFormat::kBf16;
  shape.index_format = RowFormat::kBf16;
  CacheLimits limits;
  limits.n_slots = 2;
  limits.max_context_tokens = 512;
  limits.n_pages = 6;
  limits.draft_slack = 8;
  return CacheLayout::make(shape, limits).value();
}

class KvCacheTest : public testing::Test {
 protected:
  std::unique_ptr<device::Device> device_ = device::make_cpu_device();
  std::unique_ptr<KvCache> cache_ = KvCache::create(*device_, small_layout()).value();

  // Every byte of the rings of a slot gets a value of its own.
  void fill_rings(std::int32_t slot, std::uint8_t seed) {
    const auto fill = [&](const kernels::RingView& ring) {
      auto* data = static_cast<std::uint8_t*>(ring.data) + slot * ring.slot_stride_bytes;
      for (std::int64_t i = 0; i < ring.slot_stride_bytes; ++i) {
        data[i] = static_cast<std::uint8_t>(seed + i * 7 + i / 251);
      }
    };
    fill(cache_->window(0));
    fill(cache_->window(1));
    fill(cache_->window(2));
    fill(cache_->draft_window(0));
    fill(cache_->state(1));
    fill(cache_->index_state(1));
    fill(cache_->state(2));
  }
};

TEST_F(KvCacheTest, AllocatesWhatTheLayoutSays) {
  std::int64_t allocated = 0;
  for (const device::MemoryUse& use : device_->memory()) {
    allocated += use.bytes;
  }
  EXPECT_EQ(allocated, cache_->layout().total_bytes());
}

TEST_F(KvCacheTest, PagesMapRowsToDistinctMemory) {
  const std::vector<PageId> first = {4, 1};
  const std::vector<PageId> second = {0};
  cache_->set_pages(0, 0, first);
  cache_->set_pages(1, 0, second);
  EXPECT_EQ(cache_->page(0, 1), 1);
  EXPECT_EQ(cache_->page(0, 2), kNoPage);
  const kernels::PagedRowsView rows = cache_->compressed(1);
  EXPECT_EQ(rows.rows_per_page, 32);
  std::set<const void*> seen;
  for (std::int64_t c = 0; c < 64; ++c) {
    seen.insert(rows.row(0, c));
  }
  for (std::int64_t c = 0; c < 32; ++c) {
    seen.insert(rows.row(1, c));
  }
  EXPECT_EQ(seen.size(), 96U);
  EXPECT_EQ(cache_->compressed(2).rows_per_page, 1);
  cache_->clear_pages(0);
  EXPECT_EQ(cache_->page(0, 0), kNoPage);
}

TEST_F(KvCacheTest, SnapshotMovesBetweenSlots) {
  fill_rings(0, 3);
  fill_rings(1, 99);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(cache_->layout().snapshot_bytes()));
  constexpr Position kAt = 256;
  cache_->save_snapshot(0, kAt, bytes);
  cache_->restore_snapshot(1, kAt, bytes);
  const auto expect_same = [&](const kernels::RingView& ring, Position from, std::int64_t offset,
                               std::int64_t n_bytes) {
    for (Position p = from; p < kAt; ++p) {
      const auto* a = static_cast<const std::uint8_t*>(kernels::ring_row(ring, 0, p)) + offset;
      const auto* b = static_cast<const std::uint8_t*>(kernels::ring_row(ring, 1, p)) + offset;
      EXPECT_EQ(std::memcmp(a, b, static_cast<std::size_t>(n_bytes)), 0) << "position " << p;
    }
  };
  expect_same(cache_->window(0), kAt - 128, 0, 1024);
  expect_same(cache_->window(2), kAt - 128, 0, 1024);
  expect_same(cache_->draft_window(0), kAt - 128, 0, 1024);
  expect_same(cache_->state(1), kAt - 4, 0, 512 * 4);         // A half of the values
  expect_same(cache_->state(1), kAt - 4, 1024 * 4, 512 * 4);  // A half of the scores
  expect_same(cache_->index_state(1), kAt - 4, 0, 128 * 4);
  expect_same(cache_->index_state(1), kAt - 4, 256 * 4, 128 * 4);
}

TEST_F(KvCacheTest, PageBytesSurviveARoundTrip) {
  const kernels::PagedRowsView rows = cache_->compressed(1);
  const kernels::PagedRowsView keys = cache_->index_keys(1);
  std::memset(static_cast<std::uint8_t*>(rows.data) + 2 * rows.page_stride_bytes, 0x5A,
              static_cast<std::size_t>(rows.page_stride_bytes));
  std::memset(static_cast<std::uint8_t*>(keys.data) + 2 * keys.page_stride_bytes, 0xA5,
              static_cast<std::size_t>(keys.page_stride_bytes));
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(cache_->layout().bytes_per_page()));
  cache_->save_page(2, bytes);
  cache_->restore_page(5, bytes);
  EXPECT_EQ(static_cast<std::uint8_t*>(rows.data)[5 * rows.page_stride_bytes], 0x5A);
  EXPECT_EQ(static_cast<std::uint8_t*>(keys.data)[6 * keys.page_stride_bytes - 1], 0xA5);
  EXPECT_EQ(static_cast<std::uint8_t*>(keys.data)[5 * keys.page_stride_bytes - 1], 0);
}

TEST_F(KvCacheTest, WrongUseIsCaught) {
  const std::vector<PageId> too_big = {6};
  EXPECT_DEATH(cache_->set_pages(0, 0, too_big), "page id 6");
  const std::vector<PageId> fine = {0};
  EXPECT_DEATH(cache_->set_pages(0, 4, fine), "pages 4..5");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(cache_->layout().snapshot_bytes()));
  EXPECT_DEATH(cache_->save_snapshot(0, 130, bytes), "snapshot at 130");
}

}  // namespace
}  // namespace tandem::cache
