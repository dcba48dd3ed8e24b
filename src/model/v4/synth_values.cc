#include "model/v4/synth_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string_view>

#include "compute/tensor/numeric_formats.h"

namespace tandem::v4 {
namespace {

using checkpoint::TensorSpec;
using tensor::DType;

constexpr std::size_t kTableValues = 16384;
constexpr double kFp8Spread =
    16.0;                           // standard deviation of e4m3 values: the largest stay below 448
constexpr double kFp4Spread = 2.0;  // of e2m1 values: most stay below 6

double gauss(Random& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * random.uniform());
}

std::uint64_t name_seed(std::uint64_t seed, std::string_view name) {
  for (const char c : name) {
    seed = mix64(seed ^ static_cast<unsigned char>(c));
  }
  return seed;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

struct Distribution {
  double mean = 0;
  double spread = 1;
};

// By the meaning of the tensor; the spread of quantised weights is undone by their scales.
Distribution distribution_of(const TensorSpec& spec) {
  const std::string_view name = spec.name;
  if (spec.dtype == DType::kF8E4M3) {
    return {0, kFp8Spread};
  }
  if (spec.dtype == DType::kI8) {
    return {0, kFp4Spread};
  }
  if (ends_with(name, "norm.weight")) {
    return {1.0, 0.1};
  }
  if (ends_with(name, "_fn")) {
    return {0, 1.0 / std::sqrt(static_cast<double>(spec.shape[1]))};
  }
  if (ends_with(name, "_scale")) {
    return {1.0, 0.1};
  }
  if (ends_with(name, "_base")) {
    return {0, 0.5};
  }
  if (ends_with(name, ".ape")) {
    return {0, 0.3};
  }
  if (ends_with(name, "gate.bias")) {
    return {0, 0.1};
  }
  if (ends_with(name, "attn_sink") || name == "embed.weight" ||
      ends_with(name, "markov_w1.weight")) {
    return {0, 1.0};
  }
  const double gain = ends_with(name, "ffn.gate.weight") ? 2.0 : name == "head.weight" ? 3.0 : 1.0;
  const double cols = spec.shape.size() == 2 ? static_cast<double>(spec.shape[1]) : 1.0;
  return {0, gain / std::sqrt(cols)};
}

std::vector<std::uint8_t> make_table(DType dtype, const Distribution& distribution,
                                     std::uint64_t seed) {
  Random random(seed);
  const auto draw = [&] {
    return static_cast<float>(distribution.mean + distribution.spread * gauss(random));
  };
  const auto element = static_cast<std::size_t>(tensor::dtype_bytes(dtype));
  std::vector<std::uint8_t> table(kTableValues * element);
  for (std::size_t i = 0; i < kTableValues; ++i) {
    const float value = draw();
    std::uint8_t* out = &table[i * element];
    if (dtype == DType::kF32) {
      std::memcpy(out, &value, 4);
    } else if (dtype == DType::kBf16) {
      const std::uint16_t bits = tensor::float_to_bf16(value);
      std::memcpy(out, &bits, 2);
    } else if (dtype == DType::kF8E4M3) {
      *out = tensor::float_to_e4m3(value);
    } else {
      const auto high = static_cast<std::uint8_t>(tensor::float_to_e2m1(draw()) << 4);
      *out = static_cast<std::uint8_t>(tensor::float_to_e2m1(value) | high);
    }
  }
  return table;
}

// Four elements of kBytes bytes from each random number.
template <std::size_t kBytes>
void draw_from(const std::uint8_t* table, Random& random, std::span<std::uint8_t> out) {
  std::size_t at = 0;
  while (at + kBytes <= out.size()) {
    std::uint64_t bits = random.next();
    for (int i = 0; i < 4 && at + kBytes <= out.size(); ++i, bits >>= 16, at += kBytes) {
      std::memcpy(&out[at], table + (bits % kTableValues) * kBytes, kBytes);
    }
  }
}

// The byte of the smaller of the two scales that a matrix uses.
std::uint8_t first_scale(const TensorSpec& spec) {
  const bool fp4 = !spec.stack.empty();
  const double cols = static_cast<double>(spec.shape[1] * (fp4 ? 32 : 128));
  const double scale = 1.0 / (std::sqrt(cols) * (fp4 ? kFp4Spread : kFp8Spread));
  return static_cast<std::uint8_t>(127 + std::lround(std::floor(std::log2(scale))));
}

}  // namespace

const std::vector<std::uint8_t>& ValueTables::get(const TensorSpec& spec) {
  const Distribution distribution = distribution_of(spec);
  std::vector<std::uint8_t>& table =
      tables_[std::make_tuple(spec.dtype, distribution.mean, distribution.spread)];
  if (table.empty()) {
    table = make_table(spec.dtype, distribution, name_seed(seed_, "values"));
  }
  return table;
}

ValueSource::ValueSource(const TensorSpec& spec, ValueTables& tables)
    : spec_(spec), random_(name_seed(tables.seed(), spec.name)) {
  if (spec.dtype == DType::kF8E8M0) {
    first_scale_ = first_scale(spec);
  } else if (spec.dtype != DType::kI64) {
    table_ = &tables.get(spec);
  }
}

void ValueSource::fill(std::span<std::uint8_t> out) {
  switch (spec_.dtype) {
    case DType::kF8E8M0:
      return fill_scales(out);
    case DType::kI64:
      return fill_expert_ids(out);
    case DType::kF32:
      return draw_from<4>(table_->data(), random_, out);
    case DType::kBf16:
      return draw_from<2>(table_->data(), random_, out);
    default:
      return draw_from<1>(table_->data(), random_, out);
  }
}

// Neighbouring blocks differ, so that a reader that picks the wrong block is found out.
void ValueSource::fill_scales(std::span<std::uint8_t> out) {
  std::size_t at = 0;
  while (at < out.size()) {
    std::uint64_t bits = random_.next();
    for (int i = 0; i < 8 && at < out.size(); ++i, bits >>= 1) {
      out[at++] = static_cast<std::uint8_t>(first_scale_ + (bits & 1U));
    }
  }
}

void ValueSource::fill_expert_ids(std::span<std::uint8_t> out) {
  const auto bound = static_cast<std::uint64_t>(spec_.integer_bound);
  const auto top_k = static_cast<std::uint64_t>(spec_.shape[1]);
  const std::size_t row_bytes = top_k * 8;
  for (std::size_t row = 0; row + row_bytes <= out.size(); row += row_bytes) {
    const std::uint64_t first = random_.below(bound);
    const std::uint64_t step = 1 + random_.below(bound / top_k);
    for (std::uint64_t k = 0; k < top_k; ++k) {
      const std::uint64_t id = (first + k * step) % bound;  // distinct: (top_k - 1) * step < bound
      std::memcpy(&out[row + k * 8], &id, 8);
    }
  }
}

}  // namespace tandem::v4
