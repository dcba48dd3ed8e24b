// ValueChecker: looks at the bytes of one tensor as they stream by and finds what no healthy
// checkpoint holds: NaN scales, NaN or infinite weights, ids out of range. SOURCE: model.md 2.0.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compute/tensor/dtype.h"

namespace tandem::checkpoint {

class ValueChecker {
 public:
  // integer_bound: integers must be in [0, bound); 0 = any.
  ValueChecker(tensor::DType dtype, std::int64_t integer_bound);

  // The next bytes of the tensor; whole elements.
  void feed(std::span<const std::uint8_t> bytes);

  bool ok() const { return bad_ == 0; }

  // "3 of 4096 values are NaN (byte 255), the first at element 17".
  std::string message() const;

 private:
  void count(std::int64_t element);
  void feed_bytes(std::span<const std::uint8_t> bytes, std::uint8_t mask, std::uint8_t nan);
  void feed_bf16(std::span<const std::uint8_t> bytes);
  void feed_f32(std::span<const std::uint8_t> bytes);
  void feed_integers(std::span<const std::uint8_t> bytes);

  tensor::DType dtype_;
  std::int64_t integer_bound_;
  std::int64_t seen_ = 0;  // elements
  std::int64_t bad_ = 0;
  std::int64_t first_ = -1;
};

}  // namespace tandem::checkpoint
