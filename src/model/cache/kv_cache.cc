#include "model/cache/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/check.h"

namespace tandem::cache {
namespace {

using tensor::kHeadDim;
using tensor::kIndexDim;
using tensor::kWindowTokens;

constexpr std::int32_t kOverlapRatio = 4;

std::int64_t state_row_bytes(std::int32_t ratio, std::int32_t dim) {
  return CacheLayout::state_row_floats(ratio, dim) * std::int64_t{sizeof(float)};
}

}  // namespace

Result<std::unique_ptr<KvCache>> KvCache::create(device::Device& device,
                                                 const CacheLayout& layout) {
  std::unique_ptr<KvCache> cache(new KvCache(layout));
  TANDEM_TRY(cache->allocate(device));
  for (std::int32_t slot = 0; slot < layout.limits().n_slots; ++slot) {
    cache->clear_pages(slot);
  }
  return cache;
}

Status KvCache::allocate(device::Device& device) {
  device_ = &device;
  const auto take = [&device](device::Buffer& buffer, std::int64_t bytes, const char* label) {
    Result<device::Buffer> made = device.allocate(bytes, label);
    if (!made.ok()) {
      return made.status();
    }
    buffer = std::move(made).value();
    return ok_status();
  };
  layers_.resize(layout_.shape().ratios.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerBuffers& layer = layers_[i];
    const std::int32_t ratio = layout_.shape().ratios[i];
    TANDEM_TRY(take(layer.window, layout_.window_bytes(), "kv window"));
    if (ratio == 0) {
      continue;
    }
    const char* rows_label = ratio == kOverlapRatio ? "kv rows, ratio 4" : "kv rows, ratio 128";
    TANDEM_TRY(take(layer.compressed, layout_.compressed_bytes(ratio), rows_label));
    TANDEM_TRY(take(layer.state, layout_.state_bytes(ratio, kHeadDim), "compressor state"));
    if (ratio == kOverlapRatio) {
      TANDEM_TRY(take(layer.index_keys, layout_.index_bytes(), "index keys"));
      TANDEM_TRY(
          take(layer.index_state, layout_.state_bytes(ratio, kIndexDim), "compressor state"));
    }
  }
  draft_windows_.resize(static_cast<std::size_t>(layout_.shape().n_draft_layers));
  for (device::Buffer& window : draft_windows_) {
    TANDEM_TRY(take(window, layout_.window_bytes(), "kv window, draft"));
  }
  table_.assign(static_cast<std::size_t>(layout_.limits().n_slots * layout_.max_pages_per_slot()),
                kNoPage);
  return take(page_tables_, layout_.page_table_bytes(), "page tables");
}

kernels::RingView KvCache::ring(const device::Buffer& buffer, std::int64_t row_bytes,
                                std::int32_t rows) const {
  kernels::RingView view;
  view.data = buffer.data();
  view.row_stride_bytes = row_bytes;
  view.slot_stride_bytes = row_bytes * rows;
  view.ring_rows = rows;
  return view;
}

kernels::PagedRowsView KvCache::paged(const device::Buffer& buffer, std::int32_t ratio,
                                      std::int64_t row_bytes, tensor::RowFormat format) const {
  kernels::PagedRowsView view;
  view.data = buffer.data();
  view.page_tables = page_tables_.as<PageId>();
  view.max_pages = layout_.max_pages_per_slot();
  view.rows_per_page = kPageTokens / ratio;
  view.page_stride_bytes = row_bytes * view.rows_per_page;
  view.row_bytes = row_bytes;
  view.format = format;
  return view;
}

kernels::RingView KvCache::window(std::int32_t layer) const {
  return ring(layers_[static_cast<std::size_t>(layer)].window, layout_.kv_row_bytes(),
              layout_.window_ring_rows());
}

kernels::RingView KvCache::draft_window(std::int32_t stage) const {
  return ring(draft_windows_[static_cast<std::size_t>(stage)], layout_.kv_row_bytes(),
              layout_.window_ring_rows());
}

kernels::RingView KvCache::state(std::int32_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const std::int32_t ratio = layout_.shape().ratios[i];
  TANDEM_CHECK(ratio != 0, fmt::format("layer {} has no compressor", layer));
  return ring(layers_[i].state, state_row_bytes(ratio, kHeadDim), layout_.state_ring_rows(ratio));
}

kernels::RingView KvCache::index_state(std::int32_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const std::int32_t ratio = layout_.shape().ratios[i];
  TANDEM_CHECK(ratio == kOverlapRatio, fmt::format("layer {} has no indexer", layer));
  return ring(layers_[i].index_state, state_row_bytes(ratio, kIndexDim),
              layout_.state_ring_rows(ratio));
}

kernels::PagedRowsView KvCache::compressed(std::int32_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const std::int32_t ratio = layout_.shape().ratios[i];
  TANDEM_CHECK(ratio != 0, fmt::format("layer {} has no compressed rows", layer));
  return paged(layers_[i].compressed, ratio, layout_.kv_row_bytes(), layout_.shape().kv_format);
}

kernels::PagedRowsView KvCache::index_keys(std::int32_t layer) const {
  const auto i = static_cast<std::size_t>(layer);
  const std::int32_t ratio = layout_.shape().ratios[i];
  TANDEM_CHECK(ratio == kOverlapRatio, fmt::format("layer {} has no index keys", layer));
  return paged(layers_[i].index_keys, ratio, layout_.index_row_bytes(),
               layout_.shape().index_format);
}

void KvCache::set_pages(std::int32_t slot, std::int64_t first, std::span<const PageId> pages) {
  const auto n = static_cast<std::int64_t>(pages.size());
  const std::int64_t max_pages = layout_.max_pages_per_slot();
  TANDEM_CHECK(slot >= 0 && slot < layout_.limits().n_slots && first >= 0 && first + n <= max_pages,
               fmt::format("slot {} pages {}..{}: the table has {} slots of {} pages", slot, first,
                           first + n, layout_.limits().n_slots, max_pages));
  for (const PageId page : pages) {
    TANDEM_CHECK(page >= 0 && page < layout_.limits().n_pages, fmt::format("page id {}", page));
  }
  std::copy(pages.begin(), pages.end(), table_.begin() + slot * max_pages + first);
  send_table(slot * max_pages + first, n);
}

void KvCache::clear_pages(std::int32_t slot) {
  TANDEM_CHECK(slot >= 0 && slot < layout_.limits().n_slots, fmt::format("slot {}", slot));
  const std::int64_t max_pages = layout_.max_pages_per_slot();
  std::fill_n(table_.begin() + slot * max_pages, max_pages, kNoPage);
  send_table(slot * max_pages, max_pages);
}

void KvCache::send_table(std::int64_t first, std::int64_t n) {
  device_->upload(page_tables_.as<PageId>() + first, table_.data() + first,
                  n * std::int64_t{sizeof(PageId)});
}

PageId KvCache::page(std::int32_t slot, std::int64_t index) const {
  return table_[static_cast<std::size_t>(slot * layout_.max_pages_per_slot() + index)];
}

// Calls visit(device pointer, bytes) for each run of a snapshot, in the order of the saved bytes.
template <typename Visit>
void KvCache::visit_snapshot(std::int32_t slot, Position position, const Visit& visit) const {
  TANDEM_CHECK(position > 0 && position % kPageTokens == 0,
               fmt::format("snapshot at {}, which is no multiple of {}", position, kPageTokens));
  const auto visit_window = [&](const kernels::RingView& view) {
    for (Position p = position - kWindowTokens; p < position; ++p) {
      visit(kernels::ring_row(view, slot, p), view.row_stride_bytes);
    }
  };
  // Only the A halves (first dim values, first dim scores) feed the next compressed row.
  const auto visit_carry = [&](const kernels::RingView& view, std::int32_t dim) {
    const std::int64_t half = dim * std::int64_t{sizeof(float)};
    for (Position p = position - kOverlapRatio; p < position; ++p) {
      auto* row = static_cast<std::uint8_t*>(kernels::ring_row(view, slot, p));
      visit(row, half);
      visit(row + view.row_stride_bytes / 2, half);
    }
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<std::int32_t>(i);
    visit_window(window(layer));
    if (layout_.shape().ratios[i] == kOverlapRatio) {
      visit_carry(state(layer), kHeadDim);
      visit_carry(index_state(layer), kIndexDim);
    }
  }
  for (std::int32_t stage = 0; stage < layout_.shape().n_draft_layers; ++stage) {
    visit_window(draft_window(stage));
  }
}

void KvCache::save_snapshot(std::int32_t slot, Position position,
                            std::span<std::uint8_t> out) const {
  TANDEM_CHECK(static_cast<std::int64_t>(out.size()) == layout_.snapshot_bytes(),
               fmt::format("snapshot buffer of {} bytes", out.size()));
  std::uint8_t* next = out.data();
  visit_snapshot(slot, position, [&](const void* run, std::int64_t bytes) {
    device_->download(next, run, bytes);
    next += bytes;
  });
}

void KvCache::restore_snapshot(std::int32_t slot, Position position,
                               std::span<const std::uint8_t> bytes) {
  TANDEM_CHECK(static_cast<std::int64_t>(bytes.size()) == layout_.snapshot_bytes(),
               fmt::format("snapshot of {} bytes", bytes.size()));
  const std::uint8_t* next = bytes.data();
  visit_snapshot(slot, position, [&](void* run, std::int64_t run_bytes) {
    device_->upload(run, next, run_bytes);
    next += run_bytes;
  });
}

// Calls visit(device pointer, bytes) for each layer's part of a page.
template <typename Visit>
void KvCache::visit_page(PageId page, const Visit& visit) const {
  TANDEM_CHECK(page >= 0 && page < layout_.limits().n_pages, fmt::format("page id {}", page));
  const auto visit_rows = [&](const kernels::PagedRowsView& view) {
    visit(static_cast<std::uint8_t*>(view.data) + page * view.page_stride_bytes,
          view.page_stride_bytes);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<std::int32_t>(i);
    if (layout_.shape().ratios[i] != 0) {
      visit_rows(compressed(layer));
    }
    if (layout_.shape().ratios[i] == kOverlapRatio) {
      visit_rows(index_keys(layer));
    }
  }
}

void KvCache::save_page(PageId page, std::span<std::uint8_t> out) const {
  TANDEM_CHECK(static_cast<std::int64_t>(out.size()) == layout_.bytes_per_page(),
               fmt::format("page buffer of {} bytes", out.size()));
  std::uint8_t* next = out.data();
  visit_page(page, [&](const void* run, std::int64_t bytes) {
    device_->download(next, run, bytes);
    next += bytes;
  });
}

void KvCache::restore_page(PageId page, std::span<const std::uint8_t> bytes) {
  TANDEM_CHECK(static_cast<std::int64_t>(bytes.size()) == layout_.bytes_per_page(),
               fmt::format("page of {} bytes", bytes.size()));
  const std::uint8_t* next = bytes.data();
  visit_page(page, [&](void* run, std::int64_t run_bytes) {
    device_->upload(run, next, run_bytes);
    next += run_bytes;
  });
}

}  // namespace tandem::cache
