// Seeded inputs of every kind that ops take, and comparison of outputs that started as NaN.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compute/kernels/kernels.h"
#include "compute/tensor/numeric_formats.h"
#include "compute/tensor/row_format.h"

namespace tandem::parity {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

inline std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

// A packed weight and the memory behind it.
struct Weight {
  std::vector<std::uint8_t> data;
  std::vector<std::uint8_t> scales;
  tensor::WeightMatrix view;
};

class Inputs {
 public:
  explicit Inputs(std::uint32_t seed) : engine_(seed) {}

  float normal(float spread) { return std::normal_distribution<float>(0, spread)(engine_); }

  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  std::vector<float> floats(std::int64_t n, float spread = 1) {
    std::vector<float> values(size(n));
    for (float& value : values) {
      value = normal(spread);
    }
    return values;
  }

  // Floats that are bf16 values, as activations are under kNative.
  std::vector<float> bf16_floats(std::int64_t n, float spread = 1) {
    std::vector<float> values = floats(n, spread);
    for (float& value : values) {
      value = tensor::round_bf16(value);
    }
    return values;
  }

  std::vector<std::uint16_t> bf16(std::int64_t n, float mean, float spread) {
    std::vector<std::uint16_t> values(size(n));
    for (std::uint16_t& value : values) {
      value = tensor::float_to_bf16(mean + normal(spread));
    }
    return values;
  }

  // Any code but NaN, any nibble, scales around 2^-8.
  Weight weight(tensor::WeightFormat format, std::int64_t rows, std::int64_t cols) {
    Weight w;
    w.view = {format, rows, cols, nullptr, nullptr};
    const std::int64_t n_scales = format == tensor::WeightFormat::kFp8
                                      ? (rows + 127) / 128 * ((cols + 127) / 128)
                                  : format == tensor::WeightFormat::kFp4 ? rows * (cols / 32)
                                                                         : 0;
    w.data.resize(size(w.view.bytes() - n_scales));
    for (std::int64_t i = 0; i < n_scales; ++i) {
      w.scales.push_back(static_cast<std::uint8_t>(integer(116, 121)));
    }
    fill(format, w.data);
    w.view.data = w.data.data();
    w.view.scales = w.scales.empty() ? nullptr : w.scales.data();
    return w;
  }

 private:
  void fill(tensor::WeightFormat format, std::vector<std::uint8_t>& data) {
    if (format == tensor::WeightFormat::kF32) {
      const std::vector<float> values = floats(static_cast<std::int64_t>(data.size() / 4), 0.05F);
      std::memcpy(data.data(), values.data(), data.size());
    } else if (format == tensor::WeightFormat::kBf16) {
      const auto values = bf16(static_cast<std::int64_t>(data.size() / 2), 0, 0.05F);
      std::memcpy(data.data(), values.data(), data.size());
    } else {
      for (std::uint8_t& byte : data) {
        byte = static_cast<std::uint8_t>(integer(0, 255));
        if (format == tensor::WeightFormat::kFp8 && (byte & 0x7FU) == 0x7FU) {
          byte ^= 1U;
        }
      }
    }
  }

  std::mt19937 engine_;
};

// The last floats of an output must stay as they were: nothing may write past the end.
constexpr std::int64_t kCanaries = 8;

inline std::vector<float> poisoned(std::int64_t n) {
  return std::vector<float>(size(n + kCanaries), kPoison);
}

inline void check_canaries(const std::vector<float>& out) {
  for (std::size_t i = out.size() - kCanaries; i < out.size(); ++i) {
    ASSERT_TRUE(std::isnan(out[i])) << "written past the end";
  }
}

// Every row of `cols` values within `bound` of its norm.
inline void expect_rows_near(const std::vector<float>& actual, const std::vector<float>& expected,
                             std::int64_t cols, double bound, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  check_canaries(actual);
  const auto n_rows = static_cast<std::int64_t>(actual.size() - kCanaries) / cols;
  ASSERT_GT(n_rows, 0) << what;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    double error = 0;
    double norm = 0;
    for (std::int64_t i = r * cols; i < (r + 1) * cols; ++i) {
      const auto a = static_cast<double>(actual[size(i)]);
      const auto e = static_cast<double>(expected[size(i)]);
      error += (a - e) * (a - e);
      norm += e * e;
    }
    ASSERT_LE(std::sqrt(error), bound * std::sqrt(norm) + 1e-30) << what << " row " << r;
  }
}

}  // namespace tandem::parity
