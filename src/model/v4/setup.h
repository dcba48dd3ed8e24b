// From config and weight store to a ModelState: sizes after the split, typed weights, caches and
// workspace. Internal to model/v4.
#pragma once

#include <memory>
#include <vector>

#include "model/v4/config.h"
#include "model/v4/model_state.h"
#include "model/v4/rope.h"

namespace tandem::v4 {

constexpr std::int64_t kRotationBytes = 2 * sizeof(InvFreq);
constexpr const char* kRotationLabel = "rotation tables";

// What the checkpoint says, split for one rank.
struct ModelDescription {
  Dims dims;
  DraftKind draft_kind = DraftKind::kNone;
  std::int32_t n_draft_layers = 0;
  InvFreq plain_inv_freq{};
  InvFreq yarn_inv_freq{};
};

// REQUIRES: check_world(config, tp_size).
ModelDescription describe_model(const ModelConfig& config, int tp_rank, int tp_size);

// Views of the store's tensors under typed names. REQUIRES: the store was loaded with
// make_tensor_table(config).
ModelWeights take_weights(const ModelConfig& config, const checkpoint::WeightStore& store);

// SOURCE: architecture decision 10. ERRORS: kInvalidArgument for limits that make no sense.
Result<cache::CacheLayout> plan_cache(const ModelDescription& model, const ModelLimits& limits,
                                      tensor::RowFormat kv_format);

// Allocates. ERRORS: kInvalidArgument for limits or formats that do not fit the model or the
// kernels' numerics; kResourceExhausted.
Result<ModelState> make_state(const ModelDescription& model, ModelWeights weights,
                              const ModelParts& parts, const ModelLimits& limits,
                              tensor::RowFormat kv_format);

}  // namespace tandem::v4
