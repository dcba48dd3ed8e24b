#include "tests/simulation/shadow_rank.h"

#include <fmt/format.h>

#include <set>

#include "foundation/base/random.h"

namespace tandem::simulation {

using scheduler::PlanSegment;
using scheduler::SnapshotTransfer;
using scheduler::StepPlan;

ShadowRank::ShadowRank(const scheduler::SchedulerConfig& config, std::int32_t draft_slack)
    : config_(config),
      draft_slack_(draft_slack),
      rows_(static_cast<std::size_t>(config.n_pages * config.page_tokens), 0),
      slots_(static_cast<std::size_t>(config.n_slots)),
      snapshots_(static_cast<std::size_t>(config.n_snapshots)) {
  for (Slot& slot : slots_) {
    slot.ring.resize(static_cast<std::size_t>(config.page_tokens + draft_slack));
  }
}

std::uint64_t ShadowRank::extend(std::uint64_t hash, TokenId token) {
  return mix64(hash ^ (static_cast<std::uint64_t>(token) + 1));
}

TokenId ShadowRank::next_token(std::uint64_t hash) {
  return static_cast<TokenId>(mix64(hash) % static_cast<std::uint64_t>(kVocab));
}

ShadowRank::Entry& ShadowRank::ring(Slot& slot, Position p) {
  return slot.ring[static_cast<std::size_t>(p) % slot.ring.size()];
}

const std::uint64_t* ShadowRank::row(const Slot& slot, Position p) const {
  const auto entry = static_cast<std::size_t>(p / config_.page_tokens);
  if (entry >= slot.pages.size() || slot.pages[entry] < 0) {
    return nullptr;
  }
  return &rows_[static_cast<std::size_t>(slot.pages[entry] * config_.page_tokens +
                                         p % config_.page_tokens)];
}

std::uint64_t* ShadowRank::row(const Slot& slot, Position p) {
  return const_cast<std::uint64_t*>(std::as_const(*this).row(slot, p));
}

std::string ShadowRank::check_limits(const StepPlan& plan) const {
  std::set<std::int32_t> slots;
  std::int64_t n_logit_rows = 0;
  for (const PlanSegment& segment : plan.segments) {
    if (!slots.insert(segment.slot).second) {
      return fmt::format("slot {} has two segments", segment.slot);
    }
    if (segment.tokens.empty() || segment.n_drafts > draft_slack_ ||
        (segment.n_logit_rows != 0 && segment.n_logit_rows != 1 + segment.n_drafts) ||
        segment.n_logit_rows > static_cast<std::int32_t>(segment.tokens.size())) {
      return fmt::format("sequence {}: {} rows, {} drafts, {} logit rows", segment.sequence,
                         segment.tokens.size(), segment.n_drafts, segment.n_logit_rows);
    }
    n_logit_rows += segment.n_logit_rows;
  }
  if (plan.n_rows() > config_.max_step_tokens || n_logit_rows > config_.max_logit_rows) {
    return fmt::format("{} rows, {} logit rows", plan.n_rows(), n_logit_rows);
  }
  return {};
}

std::string ShadowRank::save(const SnapshotTransfer& transfer) {
  Slot& slot = at(transfer.slot);
  const Entry entry = ring(slot, transfer.position - 1);
  if (transfer.position % config_.page_tokens != 0 || entry.position != transfer.position - 1 ||
      slot.n_computed < transfer.position || slot.n_computed > transfer.position + draft_slack_) {
    return fmt::format("slot {} cannot save position {}: it has {} rows", transfer.slot,
                       transfer.position, slot.n_computed);
  }
  snapshots_.at(static_cast<std::size_t>(transfer.snapshot)) = entry;
  return {};
}

std::string ShadowRank::restore(const SnapshotTransfer& transfer) {
  Slot& slot = at(transfer.slot);
  const Entry entry = snapshots_.at(static_cast<std::size_t>(transfer.snapshot));
  if (entry.position != transfer.position - 1) {
    return fmt::format("snapshot {} is of position {}, not {}", transfer.snapshot,
                       entry.position + 1, transfer.position);
  }
  ring(slot, entry.position) = entry;
  slot.n_computed = transfer.position;
  return {};
}

std::string ShadowRank::run_memory(const StepPlan& plan) {
  for (const SnapshotTransfer& transfer : plan.saves) {
    if (std::string error = save(transfer); !error.empty()) {
      return error;
    }
  }
  for (const std::int32_t index : plan.cleared_slots) {
    Slot& slot = at(index);
    slot.pages.clear();
    slot.ring.assign(slot.ring.size(), {});
    slot.n_computed = 0;
    slot.cleared = true;
  }
  for (const scheduler::PageAssignment& assignment : plan.assignments) {
    Slot& slot = at(assignment.slot);
    if (static_cast<std::size_t>(assignment.first_entry) != slot.pages.size()) {
      return fmt::format("slot {}: page entry {} after {}", assignment.slot, assignment.first_entry,
                         slot.pages.size());
    }
    for (const PageId page : assignment.pages) {
      if (page < 0 || page >= config_.n_pages) {
        return fmt::format("page {} does not exist", page);
      }
      slot.pages.push_back(page);
    }
  }
  for (const SnapshotTransfer& transfer : plan.restores) {
    if (std::string error = restore(transfer); !error.empty()) {
      return error;
    }
  }
  return {};
}

std::string ShadowRank::run_segment(const PlanSegment& segment, std::vector<std::uint64_t>& out) {
  Slot& slot = at(segment.slot);
  if (slot.cleared) {
    slot.owner = segment.sequence;
    slot.cleared = false;
  }
  if (slot.owner != segment.sequence) {
    return fmt::format("slot {} is sequence {}'s, not {}'s", segment.slot, slot.owner,
                       segment.sequence);
  }
  const Position first = segment.first_position;
  if (first > slot.n_computed || first < slot.n_computed - draft_slack_) {
    return fmt::format("sequence {}: position {} after {} rows", segment.sequence, first,
                       slot.n_computed);
  }
  std::uint64_t hash = empty_hash();
  if (first > 0) {
    const std::uint64_t* before = row(slot, first - 1);
    const Entry entry = ring(slot, first - 1);
    if (before == nullptr || entry.position != first - 1 || entry.hash != *before) {
      return fmt::format("sequence {}: row {} is not its own", segment.sequence, first - 1);
    }
    hash = entry.hash;
  }
  for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
    const Position p = first + static_cast<Position>(i);
    hash = extend(hash, segment.tokens[i]);
    std::uint64_t* stored = row(slot, p);
    if (stored == nullptr || p >= config_.max_context_tokens) {
      return fmt::format("sequence {}: position {} has no page", segment.sequence, p);
    }
    *stored = hash;
    ring(slot, p) = {p, hash};
    out.push_back(hash);
  }
  slot.n_computed = first + static_cast<Position>(segment.tokens.size());
  return {};
}

std::string ShadowRank::run(const StepPlan& plan, std::vector<std::uint64_t>& out) {
  out.clear();
  if (std::string error = check_limits(plan); !error.empty()) {
    return error;
  }
  if (std::string error = run_memory(plan); !error.empty()) {
    return error;
  }
  for (const PlanSegment& segment : plan.segments) {
    if (std::string error = run_segment(segment, out); !error.empty()) {
      return error;
    }
  }
  return {};
}

std::string ShadowRank::verify_rows(std::int32_t slot, const std::vector<TokenId>& tokens,
                                    std::int64_t n_tokens) const {
  std::uint64_t hash = empty_hash();
  for (Position p = 0; p < n_tokens; ++p) {
    hash = extend(hash, tokens[static_cast<std::size_t>(p)]);
    const std::uint64_t* stored = row(slots_[static_cast<std::size_t>(slot)], p);
    if (stored == nullptr || *stored != hash) {
      return fmt::format("slot {}: row {} was overwritten", slot, p);
    }
  }
  return {};
}

}  // namespace tandem::simulation
