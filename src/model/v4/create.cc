// V4Model::create and the memory plan.
#include <algorithm>
#include <utility>

#include "model/checkpoint/weight_store.h"
#include "model/v4/setup.h"

namespace tandem::v4 {
namespace {

void add_use(std::vector<device::MemoryUse>& plan, const std::string& label, std::int64_t bytes) {
  const auto found = std::find_if(plan.begin(), plan.end(),
                                  [&](const device::MemoryUse& use) { return use.label == label; });
  if (found != plan.end()) {
    found->bytes += bytes;
  } else if (bytes > 0) {
    plan.push_back({label, bytes});
  }
}

}  // namespace

Result<std::unique_ptr<V4Model>> V4Model::create(const ModelConfig& config,
                                                 const checkpoint::WeightStore& store,
                                                 const ModelParts& parts, const ModelLimits& limits,
                                                 tensor::RowFormat kv_format) {
  const int rank = parts.communicator->rank();
  const int size = parts.communicator->size();
  TANDEM_TRY(check_world(config, size));
  if (store.rank() != rank || store.world() != size) {
    return invalid_argument("model: weights were loaded for rank {} of {}, this is rank {} of {}",
                            store.rank(), store.world(), rank, size);
  }
  if (limits.max_context_tokens > config.max_positions) {
    return invalid_argument("model limits: a context of {} tokens, the checkpoint has {} positions",
                            limits.max_context_tokens, config.max_positions);
  }
  TANDEM_ASSIGN(ModelState state,
                make_state(describe_model(config, rank, size), take_weights(config, store), parts,
                           limits, kv_format));
  return make_model(config, std::move(state));
}

Result<std::vector<device::MemoryUse>> V4Model::plan_memory(const ModelConfig& config, int tp_size,
                                                            const ModelLimits& limits,
                                                            tensor::RowFormat kv_format) {
  TANDEM_TRY(check_world(config, tp_size));
  const ModelDescription model = describe_model(config, 0, tp_size);
  TANDEM_ASSIGN(const cache::CacheLayout layout, v4::plan_cache(model, limits, kv_format));
  std::vector<device::MemoryUse> plan;
  for (const cache::CacheBuffer& buffer : layout.buffers()) {
    add_use(plan, buffer.label, buffer.bytes);
  }
  for (const WorkspaceBuffer& buffer : plan_workspace(model.dims, limits, model.draft_kind)) {
    add_use(plan, buffer.label, buffer.bytes);
  }
  add_use(plan, kRotationLabel, kRotationBytes);
  return plan;
}

Result<cache::CacheLayout> V4Model::plan_cache(const ModelConfig& config, const ModelLimits& limits,
                                               tensor::RowFormat kv_format) {
  return v4::plan_cache(describe_model(config, 0, 1), limits, kv_format);
}

}  // namespace tandem::v4
