// Scratch: hands out parts of the context's scratch memory to the op in hand. Host side.
#pragma once

#include <cstdint>
#include <string>

#include "compute/cuda/ops.h"
#include "foundation/base/check.h"

namespace tandem::cuda {

class Scratch {
 public:
  explicit Scratch(const Context& context) : next_(context.scratch), left_(context.scratch_bytes) {}

  // 256-byte aligned room for n values.
  template <typename T>
  T* take(std::int64_t n) {
    const std::int64_t bytes = padded(n * static_cast<std::int64_t>(sizeof(T)));
    TANDEM_CHECK(bytes <= left_, "scratch: " + std::to_string(bytes) + " bytes wanted, " +
                                     std::to_string(left_) + " left");
    auto* result = reinterpret_cast<T*>(next_);
    next_ += bytes;
    left_ -= bytes;
    return result;
  }

  std::int64_t left_bytes() const { return left_; }

  static std::int64_t padded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

 private:
  std::uint8_t* next_;
  std::int64_t left_;
};

// Rows of a pass that needs `bytes_per_row`, at least 1 and at most n_rows; a step that does not
// fit at once runs in several passes, whose results do not depend on the cut.
inline std::int32_t rows_per_pass(const Scratch& scratch, std::int64_t bytes_per_row,
                                  std::int64_t n_rows) {
  const std::int64_t fit = (scratch.left_bytes() - 4096) / (bytes_per_row > 0 ? bytes_per_row : 1);
  TANDEM_CHECK(fit >= 1, "scratch: one row needs " + std::to_string(bytes_per_row) + " bytes, " +
                             std::to_string(scratch.left_bytes()) + " left");
  return static_cast<std::int32_t>(fit < n_rows ? fit : n_rows);
}

inline unsigned blocks_for(std::int64_t n, std::int64_t per_block) {
  return static_cast<unsigned>((n + per_block - 1) / per_block);
}

}  // namespace tandem::cuda
