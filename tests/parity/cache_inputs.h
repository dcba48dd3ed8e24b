// Random caches for parity tests: rings and pages in every row format, pages in shuffled order.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/parity/random_inputs.h"

namespace tandem::parity {

// A ring of rows of `dim` values for some slots, all places filled.
class RandomRing {
 public:
  RandomRing(Inputs& inputs, tensor::RowFormat format, int dim, int n_slots, int ring_rows)
      : row_bytes_(tensor::row_bytes(format, dim) + 8), ring_rows_(ring_rows) {
    data_.resize(size(n_slots * ring_rows * row_bytes_));
    for (int i = 0; i < n_slots * ring_rows; ++i) {
      const std::vector<float> row = inputs.bf16_floats(dim);
      store_row(format, dim, row.data(), data_.data() + i * row_bytes_);
    }
  }

  kernels::RingView view() {
    return {data_.data(), ring_rows_ * row_bytes_, row_bytes_, ring_rows_};
  }

  const std::vector<std::uint8_t>& bytes() const { return data_; }

 private:
  std::int64_t row_bytes_;
  std::int32_t ring_rows_;
  std::vector<std::uint8_t> data_;
};

// Pages of rows for some slots; every slot has max_pages pages, none shared.
class RandomPages {
 public:
  RandomPages(Inputs& inputs, tensor::RowFormat format, int dim, int n_slots, int n_rows)
      : format_(format), row_bytes_(tensor::row_bytes(format, dim)) {
    max_pages_ = (n_rows + kRowsPerPage - 1) / kRowsPerPage;
    const int n_pages = n_slots * max_pages_;
    data_.resize(size(n_pages * kRowsPerPage * row_bytes_));
    for (int i = 0; i < n_pages * kRowsPerPage; ++i) {
      const std::vector<float> row = inputs.bf16_floats(dim);
      store_row(format, dim, row.data(), data_.data() + i * row_bytes_);
    }
    for (int i = 0; i < n_pages; ++i) {
      table_.push_back(i);
    }
    for (int i = n_pages - 1; i > 0; --i) {
      std::swap(table_[size(i)], table_[size(inputs.integer(0, i))]);
    }
  }

  kernels::PagedRowsView view() {
    kernels::PagedRowsView pages;
    pages.data = data_.data();
    pages.page_tables = table_.data();
    pages.max_pages = max_pages_;
    pages.rows_per_page = kRowsPerPage;
    pages.page_stride_bytes = kRowsPerPage * row_bytes_;
    pages.row_bytes = row_bytes_;
    pages.format = format_;
    return pages;
  }

  void clear() { std::fill(data_.begin(), data_.end(), std::uint8_t{0xFF}); }

  const std::vector<std::uint8_t>& bytes() const { return data_; }

 private:
  static constexpr int kRowsPerPage = 5;
  tensor::RowFormat format_;
  std::int64_t row_bytes_;
  int max_pages_ = 0;
  std::vector<std::uint8_t> data_;
  std::vector<PageId> table_;
};

}  // namespace tandem::parity
