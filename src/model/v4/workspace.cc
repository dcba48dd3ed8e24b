#include "model/v4/workspace.h"

#include <algorithm>
#include <utility>

namespace tandem::v4 {
namespace {

constexpr std::int64_t kF32 = sizeof(float);
constexpr std::int64_t kI32 = sizeof(std::int32_t);
constexpr std::int64_t kCompressorWidth = 2 * std::int64_t{tensor::kHeadDim};
constexpr const char* kActivations = "activations";
constexpr const char* kLogits = "logits";
constexpr const char* kDraft = "draft activations";

void plan_attention(const Dims& d, std::int64_t rows, std::vector<WorkspaceBuffer>& plan) {
  const std::int64_t head_floats = rows * d.n_heads * tensor::kHeadDim;
  const auto has_ratio = [&d](std::int32_t ratio) {
    return std::find(d.ratios.begin(), d.ratios.end(), ratio) != d.ratios.end();
  };
  const bool indexed = has_ratio(4);
  const bool compressed = indexed || has_ratio(128);
  const std::int64_t index_rows = indexed ? rows : 0;
  const std::int64_t compressed_rows = compressed ? rows : 0;
  const std::vector<WorkspaceBuffer> part = {
      {&Workspace::qr, rows * d.q_lora * kF32, kActivations},
      {&Workspace::q, head_floats * kF32, kActivations},
      {&Workspace::kv, rows * tensor::kHeadDim * kF32, kActivations},
      {&Workspace::ckv, compressed_rows * kCompressorWidth * kF32, kActivations},
      {&Workspace::cscore, compressed_rows * kCompressorWidth * kF32, kActivations},
      {&Workspace::iq, index_rows * d.index_heads * tensor::kIndexDim * kF32, kActivations},
      {&Workspace::iw, index_rows * d.index_heads * kF32, kActivations},
      {&Workspace::selected, index_rows * d.index_top_k * kI32, kActivations},
      {&Workspace::n_selected, index_rows * kI32, kActivations},
      {&Workspace::attn_out, head_floats * kF32, kActivations},
      {&Workspace::groups, rows * d.n_groups * d.o_lora * kF32, kActivations},
  };
  plan.insert(plan.end(), part.begin(), part.end());
}

void plan_draft(const Dims& d, const ModelLimits& limits, DraftKind draft, std::int64_t rows,
                std::vector<WorkspaceBuffer>& plan) {
  if (draft == DraftKind::kNone) {
    return;
  }
  const bool mtp = draft == DraftKind::kMtp;
  const std::int64_t spark = mtp ? 0 : 1;
  const std::int64_t hidden_floats = rows * d.hidden;
  const std::int64_t draft_rows = draft_logit_rows(d, limits, draft);
  const auto n_taps = static_cast<std::int64_t>(d.tap_layers.size());
  const std::vector<WorkspaceBuffer> part = {
      {&Workspace::taps, spark * n_taps * hidden_floats * kF32, kDraft},
      {&Workspace::draft_streams, d.hc_mult * hidden_floats * kF32, kDraft},
      {&Workspace::draft_normed, (mtp ? d.hc_mult : 1) * hidden_floats * kF32, kDraft},
      {&Workspace::draft_embed, (1 - spark) * hidden_floats * kF32, kDraft},
      {&Workspace::draft_added, (1 - spark) * hidden_floats * kF32, kDraft},
      {&Workspace::draft_hidden, spark * draft_rows * d.hidden * kF32, kDraft},
      {&Workspace::draft_logits, draft_rows * d.vocab * kF32, kLogits, true},
      {&Workspace::markov, spark * limits.n_slots * d.markov_rank * kF32, kDraft},
      {&Workspace::markov_logits, spark * limits.n_slots * d.vocab * kF32, kLogits, true},
      {&Workspace::confidence, spark * 2 * limits.n_slots * kF32, kDraft, true},
  };
  plan.insert(plan.end(), part.begin(), part.end());
}

}  // namespace

std::int32_t draft_logit_rows(const Dims& dims, const ModelLimits& limits, DraftKind draft) {
  switch (draft) {
    case DraftKind::kNone:
      return 0;
    case DraftKind::kMtp:
      return limits.n_slots;
    case DraftKind::kDspark:
      return limits.n_slots * dims.block_size;
  }
  return 0;
}

std::int32_t workspace_rows(const Dims& dims, const ModelLimits& limits, DraftKind draft) {
  return std::max(limits.max_step_tokens, draft_logit_rows(dims, limits, draft));
}

std::vector<WorkspaceBuffer> plan_workspace(const Dims& dims, const ModelLimits& limits,
                                            DraftKind draft) {
  const Dims& d = dims;
  const std::int64_t rows = workspace_rows(d, limits, draft);
  const std::int64_t logit_rows =
      std::max(limits.max_logit_rows, draft_logit_rows(d, limits, draft));
  const std::int64_t split_logits = d.tp_size > 1 ? logit_rows * d.vocab_local * kF32 : 0;
  const std::int64_t segment_bytes = limits.n_slots * std::int64_t{sizeof(kernels::Segment)};
  std::vector<WorkspaceBuffer> plan = {
      {&Workspace::tokens, rows * std::int64_t{sizeof(TokenId)}, kActivations},
      {&Workspace::segments, segment_bytes, kActivations},
      {&Workspace::chosen, logit_rows * kI32, kActivations},
      {&Workspace::tokens_in, rows * std::int64_t{sizeof(TokenId)}, kActivations, true},
      {&Workspace::segments_in, segment_bytes, kActivations, true},
      {&Workspace::chosen_in, logit_rows * kI32, kActivations, true},
      {&Workspace::streams, rows * d.hc_mult * d.hidden * kF32, kActivations},
      {&Workspace::x, rows * d.hidden * kF32, kActivations},
      {&Workspace::post, rows * d.hc_mult * kF32, kActivations},
      {&Workspace::comb, rows * d.hc_mult * d.hc_mult * kF32, kActivations},
      {&Workspace::partial, rows * d.hidden * kF32, kActivations},
      {&Workspace::router, rows * d.n_experts * kF32, kActivations},
      {&Workspace::experts, rows * d.expert_top_k * kI32, kActivations},
      {&Workspace::weights, rows * d.expert_top_k * kF32, kActivations},
      {&Workspace::head_in, logit_rows * d.hidden * kF32, kActivations},
      {&Workspace::logits, limits.max_logit_rows * std::int64_t{d.vocab} * kF32, kLogits, true},
      {&Workspace::local_logits, split_logits, kLogits},
      {&Workspace::gathered, split_logits * d.tp_size, kLogits},
  };
  plan_attention(d, rows, plan);
  plan_draft(d, limits, draft, rows, plan);
  return plan;
}

Result<Workspace> allocate_workspace(device::Device& device, const Dims& dims,
                                     const ModelLimits& limits, DraftKind draft) {
  Workspace workspace;
  for (const WorkspaceBuffer& item : plan_workspace(dims, limits, draft)) {
    if (item.bytes > 0) {
      TANDEM_ASSIGN(workspace.*(item.buffer), item.shared
                                                  ? device.allocate_shared(item.bytes, item.label)
                                                  : device.allocate(item.bytes, item.label));
    }
  }
  return workspace;
}

}  // namespace tandem::v4
