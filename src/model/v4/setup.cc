#include "model/v4/setup.h"

#include <algorithm>
#include <utility>

namespace tandem::v4 {
namespace {

using kernels::Numerics;
using tensor::RowFormat;

Status check_limits(const ModelLimits& limits) {
  if (limits.max_step_tokens < 1) {
    return invalid_argument("model limits: {} tokens per step, expected at least 1",
                            limits.max_step_tokens);
  }
  if (limits.max_logit_rows < 1 || limits.max_logit_rows > limits.max_step_tokens) {
    return invalid_argument("model limits: {} logit rows per step of {} tokens",
                            limits.max_logit_rows, limits.max_step_tokens);
  }
  return ok_status();
}

// `reference` never rounds, so its rows need float32; other formats would add roundings.
Status check_format(Numerics numerics, RowFormat format) {
  if (numerics == Numerics::kReference && format != RowFormat::kF32) {
    return invalid_argument(
        "cache rows: `reference` numerics keeps float32 rows; choose `native` numerics for bf16 or "
        "FP8 rows");
  }
  return ok_status();
}

}  // namespace

Result<cache::CacheLayout> plan_cache(const ModelDescription& model, const ModelLimits& limits,
                                      RowFormat kv_format) {
  TANDEM_TRY(check_limits(limits));
  cache::CacheShape shape;
  shape.ratios = model.dims.ratios;
  shape.n_draft_layers = model.n_draft_layers;
  shape.kv_format = kv_format;
  shape.index_format = kv_format == RowFormat::kF32 ? RowFormat::kF32 : RowFormat::kBf16;
  cache::CacheLimits cache_limits;
  cache_limits.n_slots = limits.n_slots;
  cache_limits.max_context_tokens = limits.max_context_tokens;
  cache_limits.n_pages = limits.n_pages;
  cache_limits.draft_slack = limits.draft_slack;
  return cache::CacheLayout::make(shape, cache_limits);
}

Result<ModelState> make_state(const ModelDescription& model, ModelWeights weights,
                              const ModelParts& parts, const ModelLimits& limits,
                              RowFormat kv_format) {
  TANDEM_TRY(check_format(parts.kernels->numerics(), kv_format));
  TANDEM_ASSIGN(const cache::CacheLayout layout, plan_cache(model, limits, kv_format));
  ModelState state;
  state.parts = parts;
  state.limits = limits;
  state.dims = model.dims;
  state.draft_kind = model.draft_kind;
  state.weights = std::move(weights);
  TANDEM_ASSIGN(state.kv_cache, cache::KvCache::create(*parts.device, layout));
  TANDEM_ASSIGN(state.work,
                allocate_workspace(*parts.device, model.dims, limits, model.draft_kind));
  TANDEM_ASSIGN(state.inv_freq, parts.device->allocate(kRotationBytes, kRotationLabel));
  std::vector<float> tables(model.plain_inv_freq.begin(), model.plain_inv_freq.end());
  tables.insert(tables.end(), model.yarn_inv_freq.begin(), model.yarn_inv_freq.end());
  parts.device->upload(state.inv_freq.data(), tables.data(),
                       static_cast<std::int64_t>(tables.size() * sizeof(float)));
  return state;
}

}  // namespace tandem::v4
