#include "model/cache/pools.h"

#include <fmt/format.h>

#include "foundation/base/check.h"

namespace tandem::cache {

PagePool::PagePool(std::int64_t n_pages) : references_(static_cast<std::size_t>(n_pages), 0) {
  free_.reserve(static_cast<std::size_t>(n_pages));
  for (std::int64_t page = n_pages - 1; page >= 0; --page) {
    free_.push_back(static_cast<PageId>(page));
  }
}

std::optional<std::vector<PageId>> PagePool::acquire(std::int64_t n) {
  if (n > n_free()) {
    return std::nullopt;
  }
  std::vector<PageId> pages;
  pages.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    pages.push_back(free_.back());
    free_.pop_back();
    references_[static_cast<std::size_t>(pages.back())] = 1;
  }
  return pages;
}

void PagePool::retain(std::span<const PageId> pages) {
  for (const PageId page : pages) {
    TANDEM_CHECK(references(page) > 0, fmt::format("retain of free page {}", page));
    ++references_[static_cast<std::size_t>(page)];
  }
}

void PagePool::release(std::span<const PageId> pages) {
  for (const PageId page : pages) {
    TANDEM_CHECK(references(page) > 0, fmt::format("release of free page {}", page));
    if (--references_[static_cast<std::size_t>(page)] == 0) {
      free_.push_back(page);
    }
  }
}

std::int32_t PagePool::references(PageId page) const {
  TANDEM_CHECK(page >= 0 && page < n_pages(), fmt::format("page {} of {}", page, n_pages()));
  return references_[static_cast<std::size_t>(page)];
}

SlotPool::SlotPool(std::int32_t n_slots) : used_(static_cast<std::size_t>(n_slots), false) {
  for (std::int32_t slot = n_slots - 1; slot >= 0; --slot) {
    free_.push_back(slot);
  }
}

std::optional<std::int32_t> SlotPool::acquire() {
  if (free_.empty()) {
    return std::nullopt;
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  used_[static_cast<std::size_t>(slot)] = true;
  return slot;
}

void SlotPool::release(std::int32_t slot) {
  TANDEM_CHECK(slot >= 0 && slot < n_slots() && used_[static_cast<std::size_t>(slot)],
               fmt::format("release of slot {}, which is not in use", slot));
  used_[static_cast<std::size_t>(slot)] = false;
  free_.push_back(slot);
}

}  // namespace tandem::cache
