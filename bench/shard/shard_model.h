// One rank of two at any shape, with random weights and caches in the layout of loaded ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bench/shard/shard_backend.h"
#include "compute/comm/communicator.h"
#include "model/checkpoint/weight_store.h"
#include "model/v4/model.h"

namespace tandem::bench {

// Bytes that a step must read, besides activations.
struct StepBytes {
  double dense = 0;    // weights that every step reads
  double experts = 0;  // expected, for uniform routing
  double cache = 0;
  double total() const { return dense + experts + cache; }
};

class ShardModel {
 public:
  static Result<std::unique_ptr<ShardModel>> make(const v4::ModelConfig& config,
                                                  ShardBackend& backend,
                                                  const v4::ModelLimits& limits);

  v4::V4Model& model() { return *model_; }
  std::int64_t weight_bytes() const { return weights_->bytes(); }

  // For n_rows rows that attend to `context` earlier tokens each.
  StepBytes step_bytes(std::int64_t n_rows, std::int64_t context) const;

  // Multiplications and additions of one token's matrix products on this rank.
  double flops_per_token() const;

  // Memory that a bandwidth test may read: the weights of the first layer.
  const void* big_block(std::int64_t& bytes) const;

 private:
  ShardModel() = default;
  void measure_table(const std::vector<checkpoint::TensorSpec>& table);
  void fill_caches(ShardBackend& backend);

  v4::ModelConfig config_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::optional<checkpoint::WeightStore> weights_;
  double dense_bytes_ = 0;
  double expert_bytes_ = 0;  // all experts of all main layers
  double dense_elements_ = 0;
  double expert_elements_ = 0;
  const void* big_block_ = nullptr;
  std::int64_t big_block_bytes_ = 0;
  std::unique_ptr<v4::V4Model> model_;
};

}  // namespace tandem::bench
