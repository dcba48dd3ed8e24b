// StepPlan: everything that one step does, decided by rank 0 and executed by every rank alike.
// Plain data: what is not in the plan does not happen. Messages carry it between ranks with a
// version and a hash chained over all earlier messages, so that ranks cannot drift silently.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::scheduler {

// Pages that a slot gets before the step: entries first_entry.. of its page table.
struct PageAssignment {
  std::int32_t slot = 0;
  std::int64_t first_entry = 0;
  std::vector<PageId> pages;

  bool operator==(const PageAssignment&) const = default;
};

// A snapshot of a slot at a position (a multiple of the page size), in place `snapshot` of the
// store.
struct SnapshotTransfer {
  std::int32_t slot = 0;
  Position position = 0;
  std::int32_t snapshot = 0;

  bool operator==(const SnapshotTransfer&) const = default;
};

// One sequence's rows: positions first_position .. first_position + tokens.size() - 1.
struct PlanSegment {
  SequenceId sequence = 0;
  std::int32_t slot = 0;
  Position first_position = 0;
  std::vector<TokenId> tokens;
  std::int32_t n_drafts = 0;      // the last n tokens are drafts to be verified
  std::int32_t n_logit_rows = 0;  // the last n rows need logits: 0, or 1 + n_drafts

  bool operator==(const PlanSegment&) const = default;
};

// Executed in this order: saves, clears, assignments, restores, rows.
struct StepPlan {
  std::vector<SnapshotTransfer> saves;
  std::vector<std::int32_t> cleared_slots;
  std::vector<PageAssignment> assignments;
  std::vector<SnapshotTransfer> restores;
  std::vector<PlanSegment> segments;

  bool operator==(const StepPlan&) const = default;
  // Nothing to run; memory operations alone can wait for the next plan.
  bool empty() const { return segments.empty(); }
  std::int64_t n_rows() const;
};

// One sequence's part of the draft pass that follows a step.
struct DraftSegment {
  std::int32_t first_row = 0;  // row of the step
  std::int32_t n_rows = 0;     // accepted rows from there
  TokenId next_token = 0;      // the token after the last accepted row
  std::int32_t n_drafts = 0;   // 0: only bring the draft caches up to date
  // How the drafter chooses: as the sequence samples, with the same random numbers.
  Position next_position = 0;  // of the first draft
  float temperature = 0.0F;
  std::uint64_t seed = 0;

  bool operator==(const DraftSegment&) const = default;
};

struct DraftPlan {
  std::vector<DraftSegment> segments;

  bool operator==(const DraftPlan&) const = default;
};

enum class MessageKind : std::uint8_t {
  kStep = 1,       // run `step`
  kDraft = 2,      // run `draft` on the rows of the last step
  kHeartbeat = 3,  // answer that you are there
  kShutdown = 4,   // leave the loop
};

// What rank 0 says to the others.
struct ControlMessage {
  MessageKind kind = MessageKind::kHeartbeat;
  StepPlan step;
  DraftPlan draft;

  bool operator==(const ControlMessage&) const = default;
};

// One per rank; both ends see the same messages in the same order.
class MessageChain {
 public:
  // Bytes of the next message: header, body, chained hash.
  std::vector<std::uint8_t> encode(const ControlMessage& message);

  // ERRORS: kDataLoss if the bytes are damaged, of another version or not the next message of this
  // chain; the state is unchanged then.
  Result<ControlMessage> decode(std::span<const std::uint8_t> bytes);

  // Hash over all messages so far.
  std::uint64_t hash() const { return hash_; }
  std::uint64_t n_messages() const { return n_messages_; }

 private:
  std::uint64_t hash_ = 0;
  std::uint64_t n_messages_ = 0;
};

}  // namespace tandem::scheduler
