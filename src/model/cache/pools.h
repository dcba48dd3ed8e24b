// PagePool and SlotPool: which pages and slots are in use. Only numbers; KvCache has the memory.
// Both hand out ids in a fixed order, so the same calls give the same ids on every rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::cache {

// Pages with reference counts: a page is free again when its last user released it.
class PagePool {
 public:
  explicit PagePool(std::int64_t n_pages);

  std::int64_t n_pages() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t n_free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t n_used() const { return n_pages() - n_free(); }

  // n pages with one reference each, or nothing if fewer than n are free.
  std::optional<std::vector<PageId>> acquire(std::int64_t n);

  // One more user of each page. REQUIRES: the pages are in use.
  void retain(std::span<const PageId> pages);

  // One user less of each page. REQUIRES: the pages are in use.
  void release(std::span<const PageId> pages);

  std::int32_t references(PageId page) const;

 private:
  std::vector<std::int32_t> references_;
  std::vector<PageId> free_;  // last one goes first
};

// State slots, one per live sequence.
class SlotPool {
 public:
  explicit SlotPool(std::int32_t n_slots);

  std::int32_t n_slots() const { return static_cast<std::int32_t>(used_.size()); }
  std::int32_t n_free() const { return static_cast<std::int32_t>(free_.size()); }

  // A free slot, or nothing.
  std::optional<std::int32_t> acquire();

  // REQUIRES: the slot is in use.
  void release(std::int32_t slot);

 private:
  std::vector<bool> used_;
  std::vector<std::int32_t> free_;
};

}  // namespace tandem::cache
