// ValueSource: the random values of one tensor of a synthetic checkpoint, as bytes, from the front
// to the back. They depend on the seed and the tensor's name only. Sizes are such that activations
// stay near 1 through any number of layers: rows of weights have length about 1, norms are near 1.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "compute/tensor/dtype.h"
#include "foundation/base/random.h"
#include "model/checkpoint/tensor_spec.h"

namespace tandem::v4 {

// Ready values to draw from, made once for each type and distribution.
class ValueTables {
 public:
  explicit ValueTables(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t seed() const { return seed_; }

  // 16384 elements of the tensor's type. Valid as long as this object.
  const std::vector<std::uint8_t>& get(const checkpoint::TensorSpec& spec);

 private:
  std::uint64_t seed_;
  std::map<std::tuple<tensor::DType, double, double>, std::vector<std::uint8_t>> tables_;
};

class ValueSource {
 public:
  // `tables` and `spec` outlive this object.
  ValueSource(const checkpoint::TensorSpec& spec, ValueTables& tables);

  // The next out.size() bytes. REQUIRES: whole rows of integers, whole 8 bytes else, but for the
  // last call.
  void fill(std::span<std::uint8_t> out);

 private:
  void fill_scales(std::span<std::uint8_t> out);
  void fill_expert_ids(std::span<std::uint8_t> out);

  const checkpoint::TensorSpec& spec_;
  Random random_;
  const std::vector<std::uint8_t>* table_ = nullptr;
  std::uint8_t first_scale_ = 0;
};

}  // namespace tandem::v4
