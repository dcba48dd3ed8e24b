// CacheLayout: the sizes of everything that sequences keep between steps, known before a byte is
// allocated. The memory plan, the per-token figure and KvCache all read the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compute/tensor/row_format.h"
#include "foundation/base/status.h"

namespace tandem::cache {

// Tokens per page of compressed rows: the least that holds whole windows of both ratios. A full
// page never changes, so sequences that share a prefix may share its pages without copying.
constexpr std::int32_t kPageTokens = 128;

// What one sequence stores, by layer.
struct CacheShape {
  std::vector<std::int32_t> ratios;  // one per main layer: 0 (window only), 4 or 128
  std::int32_t n_draft_layers = 0;   // MTP block or DSpark stages: window only
  tensor::RowFormat kv_format = tensor::RowFormat::kF32;     // window and compressed KV rows
  tensor::RowFormat index_format = tensor::RowFormat::kF32;  // index keys: kF32 or kBf16
};

struct CacheLimits {
  std::int32_t n_slots = 0;             // sequences with live state
  std::int64_t max_context_tokens = 0;  // longest sequence
  std::int64_t n_pages = 0;             // shared by all sequences
  std::int32_t draft_slack = 0;         // rows that may be rolled back at once
};

// One line of the memory plan.
struct CacheBuffer {
  std::string label;
  std::int64_t bytes = 0;
};

class CacheLayout {
 public:
  // ERRORS: kInvalidArgument names the size that makes no sense.
  static Result<CacheLayout> make(const CacheShape& shape, const CacheLimits& limits);

  const CacheShape& shape() const { return shape_; }
  const CacheLimits& limits() const { return limits_; }

  // Ring rows hold what the next step may read plus draft_slack rows that may be rolled back, so
  // that a rejected draft is dropped by truncation and nothing is recomputed. SOURCE: model.md 2.5.
  std::int32_t window_ring_rows() const { return window_ring_rows_; }
  std::int32_t state_ring_rows(std::int32_t ratio) const;

  // Floats in one ring row of a compressor: width values, then width scores. SOURCE: model.md 2.6.
  static std::int32_t state_row_floats(std::int32_t ratio, std::int32_t dim);

  // Bytes of one layer's buffer.
  std::int64_t window_bytes() const;
  std::int64_t state_bytes(std::int32_t ratio, std::int32_t dim) const;
  std::int64_t compressed_bytes(std::int32_t ratio) const;
  std::int64_t index_bytes() const;
  std::int64_t page_table_bytes() const;

  std::int64_t max_pages_per_slot() const;
  std::int64_t kv_row_bytes() const;
  std::int64_t index_row_bytes() const;

  // Sums over all layers.
  std::vector<CacheBuffer> buffers() const;  // in a fixed order, only those with bytes
  std::int64_t total_bytes() const;
  double bytes_per_token() const;       // growth of one sequence; model.md 4.4
  std::int64_t bytes_per_slot() const;  // windows and compressor rings of one sequence
  std::int64_t bytes_per_page() const;  // one page of all layers
  std::int64_t snapshot_bytes() const;  // see KvCache::save_snapshot

 private:
  std::int64_t n_layers_with(std::int32_t ratio) const;

  CacheShape shape_;
  CacheLimits limits_;
  std::int32_t window_ring_rows_ = 0;
};

// Pages that hold n_tokens tokens.
constexpr std::int64_t pages_for(std::int64_t n_tokens) {
  return (n_tokens + kPageTokens - 1) / kPageTokens;
}

}  // namespace tandem::cache
