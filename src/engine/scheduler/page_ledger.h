// PageLedger and SlotLedger: the scheduler's own books of who uses which page and slot. Ids are
// handed out in a fixed order, so the same calls give the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::scheduler {

// Pages with reference counts: full pages of a shared prefix have several users.
class PageLedger {
 public:
  explicit PageLedger(std::int64_t n_pages);

  std::int64_t n_pages() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t n_free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t n_used() const { return n_pages() - n_free(); }

  // n pages with one reference each, or nothing if fewer are free.
  std::optional<std::vector<PageId>> acquire(std::int64_t n);

  // One more user. REQUIRES: the page is in use.
  void retain(PageId page);

  // One user less of each. REQUIRES: the pages are in use.
  void release(std::span<const PageId> pages);

  std::int32_t references(PageId page) const { return references_[static_cast<std::size_t>(page)]; }

 private:
  std::vector<std::int32_t> references_;
  std::vector<PageId> free_;  // last one goes first
};

class SlotLedger {
 public:
  explicit SlotLedger(std::int32_t n_slots);

  std::int32_t n_free() const { return static_cast<std::int32_t>(free_.size()); }
  std::optional<std::int32_t> acquire();
  void release(std::int32_t slot) { free_.push_back(slot); }

 private:
  std::vector<std::int32_t> free_;
};

}  // namespace tandem::scheduler
