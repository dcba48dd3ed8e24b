#include "engine/runtime/v4_forward_model.h"

namespace tandem::runtime {
namespace {

class V4ForwardModel final : public ForwardModel {
 public:
  explicit V4ForwardModel(v4::V4Model& model) : model_(model) {}

  ForwardSizes sizes() const override {
    const v4::ModelLimits& limits = model_.limits();
    ForwardSizes sizes;
    sizes.vocab = model_.config().vocab_size;
    sizes.max_step_tokens = limits.max_step_tokens;
    sizes.max_logit_rows = limits.max_logit_rows;
    sizes.n_slots = limits.n_slots;
    sizes.max_context_tokens = limits.max_context_tokens;
    sizes.n_pages = limits.n_pages;
    sizes.page_tokens = v4::kPageTokens;
    sizes.draft_slack = limits.draft_slack;
    sizes.max_drafts = model_.max_drafts();
    sizes.n_experts = model_.config().n_experts;
    sizes.experts_per_token = model_.config().expert_top_k;
    sizes.snapshot_bytes = model_.kv_cache().layout().snapshot_bytes();
    return sizes;
  }

  void set_pages(std::int32_t slot, std::int64_t first, std::span<const PageId> pages) override {
    model_.kv_cache().set_pages(slot, first, pages);
  }

  void clear_pages(std::int32_t slot) override { model_.kv_cache().clear_pages(slot); }

  void save_snapshot(std::int32_t slot, Position position,
                     std::span<std::uint8_t> out) const override {
    model_.kv_cache().save_snapshot(slot, position, out);
  }

  void restore_snapshot(std::int32_t slot, Position position,
                        std::span<const std::uint8_t> bytes) override {
    model_.kv_cache().restore_snapshot(slot, position, bytes);
  }

  Result<v4::StepOutput> forward(const v4::StepInput& input) override {
    return model_.forward(input);
  }

  Result<v4::DraftOutput> draft(std::span<const v4::DraftSequence> sequences,
                                const v4::DraftSampler& sampler) override {
    return model_.draft(sequences, sampler);
  }

 private:
  v4::V4Model& model_;
};

}  // namespace

std::unique_ptr<ForwardModel> make_v4_forward_model(v4::V4Model& model) {
  return std::make_unique<V4ForwardModel>(model);
}

}  // namespace tandem::runtime
