// ValueSource: the random values of one tensor of a synthetic checkpoint, as bytes, from the front
// to the back. They depend on the seed and the tensor's name only. Sizes are such that activations
// stay near 1 through any number of layers: rows of weights have length about 1, norms are near 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/random.h"
#include "model/checkpoint/tensor_spec.h"
#include "model/v4/config.h"

namespace tandem::v4 {

class ValueSource {
 public:
  ValueSource(const ModelConfig& config, const checkpoint::TensorSpec& spec, std::uint64_t seed);

  // The next out.size() bytes. REQUIRES: whole rows of integers, whole 8 bytes else, but for the
  // last call.
  void fill(std::span<std::uint8_t> out);

 private:
  void fill_from_table(std::span<std::uint8_t> out);
  void fill_scales(std::span<std::uint8_t> out);
  void fill_expert_ids(std::span<std::uint8_t> out);

  const checkpoint::TensorSpec& spec_;
  Random random_;
  // 65536 bytes of ready values of the tensor's type; a random place gives the next 1, 2 or 4.
  std::vector<std::uint8_t> table_;
  std::uint8_t first_scale_ = 0;
  std::int32_t ids_per_row_ = 0;
};

}  // namespace tandem::v4
