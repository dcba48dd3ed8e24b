#include "engine/runtime/plan_executor.h"

#include "engine/sampling/race.h"

namespace tandem::runtime {

PlanExecutor::PlanExecutor(ForwardModel& model, std::int32_t n_snapshots)
    : model_(model),
      sizes_(model.sizes()),
      snapshots_(static_cast<std::size_t>(n_snapshots),
                 std::vector<std::uint8_t>(static_cast<std::size_t>(sizes_.snapshot_bytes))) {}

std::span<std::uint8_t> PlanExecutor::snapshot(std::int32_t index) {
  return snapshots_[static_cast<std::size_t>(index)];
}

// Plans come from another machine: what they name must exist before memory is touched.
Status PlanExecutor::check(const scheduler::StepPlan& plan) const {
  const auto bad_slot = [this](std::int32_t slot) { return slot < 0 || slot >= sizes_.n_slots; };
  for (const auto* transfers : {&plan.saves, &plan.restores}) {
    for (const scheduler::SnapshotTransfer& transfer : *transfers) {
      if (bad_slot(transfer.slot) || transfer.snapshot < 0 ||
          transfer.snapshot >= static_cast<std::int32_t>(snapshots_.size()) ||
          transfer.position <= 0 || transfer.position % sizes_.page_tokens != 0) {
        return data_loss("plan: snapshot {} of slot {} at position {} does not exist here",
                         transfer.snapshot, transfer.slot, transfer.position);
      }
    }
  }
  for (const std::int32_t slot : plan.cleared_slots) {
    if (bad_slot(slot)) {
      return data_loss("plan: slot {} does not exist here", slot);
    }
  }
  const std::int64_t max_pages =
      (sizes_.max_context_tokens + sizes_.page_tokens - 1) / sizes_.page_tokens;
  for (const scheduler::PageAssignment& assignment : plan.assignments) {
    const auto n = static_cast<std::int64_t>(assignment.pages.size());
    if (bad_slot(assignment.slot) || assignment.first_entry < 0 ||
        assignment.first_entry + n > max_pages) {
      return data_loss("plan: slot {} has no entries {} to {}", assignment.slot,
                       assignment.first_entry, assignment.first_entry + n - 1);
    }
    for (const PageId page : assignment.pages) {
      if (page < 0 || page >= sizes_.n_pages) {
        return data_loss("plan: page {} does not exist here", page);
      }
    }
  }
  return ok_status();
}

Result<v4::StepOutput> PlanExecutor::run(const scheduler::StepPlan& plan) {
  TANDEM_TRY(check(plan));
  for (const scheduler::SnapshotTransfer& save : plan.saves) {
    model_.save_snapshot(save.slot, save.position, snapshot(save.snapshot));
  }
  for (const std::int32_t slot : plan.cleared_slots) {
    model_.clear_pages(slot);
  }
  for (const scheduler::PageAssignment& assignment : plan.assignments) {
    model_.set_pages(assignment.slot, assignment.first_entry, assignment.pages);
  }
  for (const scheduler::SnapshotTransfer& restore : plan.restores) {
    model_.restore_snapshot(restore.slot, restore.position, snapshot(restore.snapshot));
  }
  input_.tokens.clear();
  input_.segments.clear();
  input_.logit_rows.clear();
  for (const scheduler::PlanSegment& segment : plan.segments) {
    kernels::Segment rows;
    rows.slot = segment.slot;
    rows.first_row = static_cast<std::int32_t>(input_.tokens.size());
    rows.n_rows = static_cast<std::int32_t>(segment.tokens.size());
    rows.first_position = segment.first_position;
    input_.segments.push_back(rows);
    input_.tokens.insert(input_.tokens.end(), segment.tokens.begin(), segment.tokens.end());
    const auto end = static_cast<std::int32_t>(input_.tokens.size());
    for (std::int32_t row = end - segment.n_logit_rows; row < end; ++row) {
      input_.logit_rows.push_back(row);
    }
  }
  return model_.forward(input_);
}

Result<v4::DraftOutput> PlanExecutor::draft(const scheduler::DraftPlan& plan) {
  std::vector<v4::DraftSequence> sequences;
  for (const scheduler::DraftSegment& segment : plan.segments) {
    v4::DraftSequence sequence;
    sequence.first_row = segment.first_row;
    sequence.n_rows = segment.n_rows;
    sequence.next_token = segment.next_token;
    sequence.n_drafts = segment.n_drafts;
    sequences.push_back(sequence);
  }
  // Every rank draws the same token: same logits, same random numbers.
  const auto sampler = [&plan](std::size_t index, std::int32_t depth,
                               std::span<const float> logits) {
    const scheduler::DraftSegment& segment = plan.segments[index];
    return sampling::draw_draft(logits, segment.temperature, segment.seed,
                                segment.next_position + depth);
  };
  return model_.draft(sequences, sampler);
}

}  // namespace tandem::runtime
