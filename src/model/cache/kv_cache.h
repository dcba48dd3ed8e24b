// KvCache: the device memory of all sequences on one rank, and views of it for the kernels.
//
// A slot has fixed-size rings (raw window of every layer, compressor state) and a row of the page
// table; pages hold the growing compressed rows and index keys of all layers under one page id.
// Every row has an absolute position. Rolling back = the caller continues from an earlier position:
// nothing is cleared, later rows are simply written again. A slot that gets a new sequence needs no
// clearing either: kernels read only positions below the step's first position.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/device/device.h"
#include "compute/kernels/step_rows.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"
#include "model/cache/cache_layout.h"

namespace tandem::cache {

constexpr PageId kNoPage = -1;

class KvCache {
 public:
  // Allocates everything. ERRORS: kResourceExhausted from the device.
  static Result<std::unique_ptr<KvCache>> create(device::Device& device, const CacheLayout& layout);

  const CacheLayout& layout() const { return layout_; }

  // Views of one main layer. State and row views only for the ratios that have them.
  kernels::RingView window(std::int32_t layer) const;
  kernels::RingView state(std::int32_t layer) const;        // ratio 4 and 128
  kernels::RingView index_state(std::int32_t layer) const;  // ratio 4
  kernels::PagedRowsView compressed(std::int32_t layer) const;
  kernels::PagedRowsView index_keys(std::int32_t layer) const;
  // Window of one MTP or DSpark stage.
  kernels::RingView draft_window(std::int32_t stage) const;

  // Entries first .. first+pages.size()-1 of the slot's page table. REQUIRES: within
  // max_pages_per_slot; pages are ids of the pool.
  void set_pages(std::int32_t slot, std::int64_t first, std::span<const PageId> pages);
  // All entries of the slot become kNoPage.
  void clear_pages(std::int32_t slot);
  PageId page(std::int32_t slot, std::int64_t index) const;

  // What a sequence needs, besides its pages, to go on from `position`: the last 128 raw rows of
  // every layer and the ratio-4 carry rows. SOURCE: model.md 2.13. REQUIRES: position is a positive
  // multiple of 128; the slot has computed at least `position` tokens and at most
  // position + draft_slack; the spans have layout().snapshot_bytes().
  void save_snapshot(std::int32_t slot, Position position, std::span<std::uint8_t> out) const;
  void restore_snapshot(std::int32_t slot, Position position, std::span<const std::uint8_t> bytes);

  // The rows of all layers in one page, in a fixed order: for tiers outside the device.
  // REQUIRES: the spans have layout().bytes_per_page().
  void save_page(PageId page, std::span<std::uint8_t> out) const;
  void restore_page(PageId page, std::span<const std::uint8_t> bytes);

 private:
  struct LayerBuffers {
    device::Buffer window;
    device::Buffer state;
    device::Buffer index_state;
    device::Buffer compressed;
    device::Buffer index_keys;
  };

  explicit KvCache(CacheLayout layout) : layout_(std::move(layout)) {}
  Status allocate(device::Device& device);
  // Entries first .. first + n - 1 to the device.
  void send_table(std::int64_t first, std::int64_t n);
  kernels::RingView ring(const device::Buffer& buffer, std::int64_t row_bytes,
                         std::int32_t rows) const;
  kernels::PagedRowsView paged(const device::Buffer& buffer, std::int32_t ratio,
                               std::int64_t row_bytes, tensor::RowFormat format) const;
  template <typename Visit>
  void visit_snapshot(std::int32_t slot, Position position, const Visit& visit) const;
  template <typename Visit>
  void visit_page(PageId page, const Visit& visit) const;

  CacheLayout layout_;
  device::Device* device_ = nullptr;
  std::vector<LayerBuffers> layers_;  // main layers
  std::vector<device::Buffer> draft_windows_;
  device::Buffer page_tables_;  // [n_slots, max_pages] PageId
  std::vector<PageId> table_;   // the same, for the host
};

}  // namespace tandem::cache
