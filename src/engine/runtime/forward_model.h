// ForwardModel: all that the step loop needs of a model on one rank. V4Model satisfies it through
// V4ForwardModel; tests use a small deterministic function, so that the loop is tested without
// weights. Every rank calls the same functions with the same arguments in the same order.
#pragma once

#include <cstdint>
#include <span>

#include "foundation/base/ids.h"
#include "foundation/base/status.h"
#include "model/v4/model.h"

namespace tandem::runtime {

struct ForwardSizes {
  std::int32_t vocab = 0;
  std::int32_t max_step_tokens = 0;
  std::int32_t max_logit_rows = 0;
  std::int32_t n_slots = 0;
  std::int64_t max_context_tokens = 0;
  std::int64_t n_pages = 0;
  std::int32_t page_tokens = 0;  // snapshots are taken at multiples of it
  std::int32_t draft_slack = 0;  // rows that may be rolled back at once
  std::int32_t max_drafts = 0;   // 0: no drafter
  std::int64_t snapshot_bytes = 0;
  std::int32_t n_experts = 256;  // of a layer; only for estimates of cost
  std::int32_t experts_per_token = 6;
};

class ForwardModel {
 public:
  virtual ~ForwardModel() = default;

  virtual ForwardSizes sizes() const = 0;

  // See cache::KvCache.
  virtual void set_pages(std::int32_t slot, std::int64_t first, std::span<const PageId> pages) = 0;
  virtual void clear_pages(std::int32_t slot) = 0;
  virtual void save_snapshot(std::int32_t slot, Position position,
                             std::span<std::uint8_t> out) const = 0;
  virtual void restore_snapshot(std::int32_t slot, Position position,
                                std::span<const std::uint8_t> bytes) = 0;

  // See v4::V4Model.
  virtual Result<v4::StepOutput> forward(const v4::StepInput& input) = 0;
  virtual Result<v4::DraftOutput> draft(std::span<const v4::DraftSequence> sequences,
                                        const v4::DraftSampler& sampler) = 0;
};

}  // namespace tandem::runtime
