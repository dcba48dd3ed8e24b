#include "model/checkpoint/value_check.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace tandem::checkpoint {
namespace {

using tensor::DType;

std::string_view what_is_wrong(DType dtype) {
  switch (dtype) {
    case DType::kF8E8M0:
      return "are NaN (byte 255)";
    case DType::kF8E4M3:
      return "are NaN (byte 0x7F or 0xFF)";
    case DType::kI32:
    case DType::kI64:
      return "are out of range";
    default:
      return "are not finite";
  }
}

template <typename T>
T load(const std::uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace

ValueChecker::ValueChecker(DType dtype, std::int64_t integer_bound)
    : dtype_(dtype), integer_bound_(integer_bound) {}

void ValueChecker::count(std::int64_t element) {
  first_ = bad_ == 0 ? element : first_;
  ++bad_;
}

// One pass without branches over a block decides whether it needs a closer look.
void ValueChecker::feed_bytes(std::span<const std::uint8_t> bytes, std::uint8_t mask,
                              std::uint8_t nan) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    const std::size_t end = std::min(at + kBlock, bytes.size());
    unsigned found = 0;
    for (std::size_t i = at; i < end; ++i) {
      found |= static_cast<unsigned>((bytes[i] & mask) == nan);
    }
    for (std::size_t i = at; found != 0 && i < end; ++i) {
      if ((bytes[i] & mask) == nan) {
        count(seen_ + static_cast<std::int64_t>(i));
      }
    }
  }
}

void ValueChecker::feed_bf16(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    if ((load<std::uint16_t>(&bytes[i]) & 0x7F80U) == 0x7F80U) {
      count(seen_ + static_cast<std::int64_t>(i / 2));
    }
  }
}

void ValueChecker::feed_f32(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i + 3 < bytes.size(); i += 4) {
    if ((load<std::uint32_t>(&bytes[i]) & 0x7F800000U) == 0x7F800000U) {
      count(seen_ + static_cast<std::int64_t>(i / 4));
    }
  }
}

void ValueChecker::feed_integers(std::span<const std::uint8_t> bytes) {
  const std::size_t size = dtype_ == DType::kI64 ? 8 : 4;
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
    const std::int64_t value =
        size == 8 ? load<std::int64_t>(&bytes[i]) : std::int64_t{load<std::int32_t>(&bytes[i])};
    if (value < 0 || value >= integer_bound_) {
      count(seen_ + static_cast<std::int64_t>(i / size));
    }
  }
}

void ValueChecker::feed(std::span<const std::uint8_t> bytes) {
  switch (dtype_) {
    case DType::kF8E8M0:
      feed_bytes(bytes, 0xFF, 0xFF);
      break;
    case DType::kF8E4M3:
      feed_bytes(bytes, 0x7F, 0x7F);
      break;
    case DType::kBf16:
      feed_bf16(bytes);
      break;
    case DType::kF32:
      feed_f32(bytes);
      break;
    case DType::kI32:
    case DType::kI64:
      if (integer_bound_ > 0) {
        feed_integers(bytes);
      }
      break;
    case DType::kI8:  // every nibble is a value
      break;
  }
  seen_ += static_cast<std::int64_t>(bytes.size()) / tensor::dtype_bytes(dtype_);
}

std::string ValueChecker::message() const {
  std::string text = fmt::format("{} of {} values {}, the first at element {}", bad_, seen_,
                                 what_is_wrong(dtype_), first_);
  if (dtype_ == DType::kI32 || dtype_ == DType::kI64) {
    text += fmt::format("; expected 0..{}", integer_bound_ - 1);
  }
  return text;
}

}  // namespace tandem::checkpoint
