#include "engine/scheduler/page_ledger.h"

#include <algorithm>
#include <numeric>

#include "foundation/base/check.h"

namespace tandem::scheduler {

PageLedger::PageLedger(std::int64_t n_pages)
    : references_(static_cast<std::size_t>(n_pages), 0), free_(static_cast<std::size_t>(n_pages)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::optional<std::vector<PageId>> PageLedger::acquire(std::int64_t n) {
  if (n > n_free()) {
    return std::nullopt;
  }
  std::vector<PageId> pages(static_cast<std::size_t>(n));
  for (PageId& page : pages) {
    page = free_.back();
    free_.pop_back();
    references_[static_cast<std::size_t>(page)] = 1;
  }
  return pages;
}

void PageLedger::retain(PageId page) {
  TANDEM_CHECK(references(page) > 0, "a free page cannot get another user");
  ++references_[static_cast<std::size_t>(page)];
}

void PageLedger::release(std::span<const PageId> pages) {
  for (const PageId page : pages) {
    std::int32_t& count = references_[static_cast<std::size_t>(page)];
    TANDEM_CHECK(count > 0, "a page was released twice");
    if (--count == 0) {
      free_.push_back(page);
    }
  }
}

SlotLedger::SlotLedger(std::int32_t n_slots) : free_(static_cast<std::size_t>(n_slots)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::optional<std::int32_t> SlotLedger::acquire() {
  if (free_.empty()) {
    return std::nullopt;
  }
  const std::int32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace tandem::scheduler
