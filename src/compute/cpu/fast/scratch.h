// Scratch: a float buffer that grows and never shrinks, aligned to cache lines. After the largest
// step has run once, ops allocate nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

namespace tandem::cpu {

class Scratch {
 public:
  // At least n floats; zero when first handed out, then whatever was left there.
  float* floats(std::int64_t n) {
    if (n > capacity_) {
      const auto size = static_cast<std::size_t>(n);
      data_.reset(static_cast<float*>(::operator new(size * sizeof(float), kAlignment)));
      std::fill_n(data_.get(), n, 0.0F);
      capacity_ = n;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t kAlignment{64};

  struct Free {
    void operator()(float* data) const { ::operator delete(data, kAlignment); }
  };

  std::unique_ptr<float, Free> data_;
  std::int64_t capacity_ = 0;
};

}  // namespace tandem::cpu
