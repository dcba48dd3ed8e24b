// StepRows: the token rows of one forward pass, and the views of the caches that ops read and
// write.
#pragma once

#include <cstdint>

#include "compute/tensor/portable.h"
#include "compute/tensor/row_format.h"
#include "foundation/base/ids.h"

namespace tandem::kernels {

// One sequence's run of rows in this step: positions first_position .. first_position+n_rows-1.
struct Segment {
  std::int32_t slot = 0;       // state slot of the sequence
  std::int32_t first_row = 0;  // index of its first row in the step
  std::int32_t n_rows = 0;
  Position first_position = 0;
};

// All rows of a step. Rows of a segment are adjacent and in order of position; segments are in
// order of first_row and cover 0 .. n_tokens-1; a slot appears in at most one segment.
struct StepRows {
  std::int32_t n_tokens = 0;
  std::int32_t n_segments = 0;
  const TokenId* tokens = nullptr;    // [n_tokens]
  const Segment* segments = nullptr;  // [n_segments]
};

// Fixed-size state of every slot in one layer: a ring of rows addressed by position mod ring_rows.
// The raw window (width 512) and the compressors' (value, score) pairs live in rings.
struct RingView {
  void* data = nullptr;  // [n_slots, ring_rows, row_bytes]
  std::int64_t slot_stride_bytes = 0;
  std::int64_t row_stride_bytes = 0;
  std::int32_t ring_rows = 0;
};

// Growing rows (compressed KV or index keys) of every slot in one layer, in pages.
// Row c of slot s is at data + page_tables[s][c / rows_per_page] * page_stride_bytes
//                       + (c % rows_per_page) * row_bytes.
struct PagedRowsView {
  void* data = nullptr;                 // [n_pages, rows_per_page, row_bytes]
  const PageId* page_tables = nullptr;  // [n_slots, max_pages]
  std::int64_t max_pages = 0;
  std::int32_t rows_per_page = 0;
  std::int64_t page_stride_bytes = 0;
  std::int64_t row_bytes = 0;
  tensor::RowFormat format = tensor::RowFormat::kF32;

  TANDEM_HD void* row(std::int32_t slot, std::int64_t c) const {
    const PageId page = page_tables[slot * max_pages + c / rows_per_page];
    return static_cast<std::uint8_t*>(data) + page * page_stride_bytes +
           (c % rows_per_page) * row_bytes;
  }
};

// Row of position p of slot s in a ring.
TANDEM_HD inline void* ring_row(const RingView& ring, std::int32_t slot, Position p) {
  return static_cast<std::uint8_t*>(ring.data) + slot * ring.slot_stride_bytes +
         (p % ring.ring_rows) * ring.row_stride_bytes;
}

}  // namespace tandem::kernels
