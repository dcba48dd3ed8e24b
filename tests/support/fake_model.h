// FakeModel: a ForwardModel whose logits are a hash of all tokens up to a row. It keeps that hash
// where the real model keeps its caches (pages, a ring per slot, a draft ring, snapshots) and
// reports every use of a row that is not what the sequence computed, so that a wrong page, slot,
// position, rollback or snapshot shows as an error or as other tokens.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "compute/comm/communicator.h"
#include "engine/runtime/forward_model.h"
#include "foundation/base/random.h"

namespace tandem::testing {

struct FakeModelOptions {
  runtime::ForwardSizes sizes;
  double draft_quality = 0.75;  // how often a draft is the best token of the target
  std::function<Status(const v4::StepInput&)> before_forward;  // faults and delays
  std::function<void(std::size_t logit_row, TokenId last, std::span<float>)> edit_logits;
};

inline runtime::ForwardSizes fake_sizes() {
  runtime::ForwardSizes sizes;
  sizes.vocab = 64;
  sizes.max_step_tokens = 64;
  sizes.max_logit_rows = 32;
  sizes.n_slots = 8;
  sizes.max_context_tokens = 1024;
  sizes.n_pages = 128;
  sizes.page_tokens = 16;
  sizes.draft_slack = 8;
  sizes.max_drafts = 4;
  sizes.snapshot_bytes = 16;
  return sizes;
}

class FakeModel final : public runtime::ForwardModel {
 public:
  FakeModel(FakeModelOptions options, comm::Communicator& communicator)
      : options_(std::move(options)),
        communicator_(communicator),
        rows_(static_cast<std::size_t>(options_.sizes.n_pages * options_.sizes.page_tokens), 0),
        slots_(static_cast<std::size_t>(options_.sizes.n_slots)) {}

  // The hash of a sequence, for tests that compute what must come out.
  static std::uint64_t extend(std::uint64_t hash, TokenId token) {
    return mix64(hash ^ (static_cast<std::uint64_t>(token) + 1));
  }

  static float logit(std::uint64_t hash, std::size_t token) {
    return static_cast<float>(Random(hash + token).uniform() * 8.0);
  }

  runtime::ForwardSizes sizes() const override { return options_.sizes; }

  void set_pages(std::int32_t slot, std::int64_t first, std::span<const PageId> pages) override {
    std::vector<PageId>& table = at(slot).pages;
    table.resize(std::max(table.size(), static_cast<std::size_t>(first) + pages.size()), -1);
    std::copy(pages.begin(), pages.end(), table.begin() + first);
  }

  void clear_pages(std::int32_t slot) override { at(slot) = Slot(); }

  void save_snapshot(std::int32_t slot, Position position,
                     std::span<std::uint8_t> out) const override {
    const Slot& s = slots_[static_cast<std::size_t>(slot)];
    const Entry entry = s.ring[ring_index(position - 1)];
    const bool usable = entry.position == position - 1 && s.n_computed >= position &&
                        s.n_computed <= position + options_.sizes.draft_slack;
    std::memcpy(out.data(), &position, 8);
    const std::uint64_t hash = usable ? entry.hash : 0xBAD;
    std::memcpy(out.data() + 8, &hash, 8);
  }

  void restore_snapshot(std::int32_t slot, Position position,
                        std::span<const std::uint8_t> bytes) override {
    Entry entry;
    std::memcpy(&entry.position, bytes.data(), 8);
    std::memcpy(&entry.hash, bytes.data() + 8, 8);
    entry.position -= 1;
    at(slot).ring[ring_index(position - 1)] = entry;
    at(slot).n_computed = position;
    at(slot).n_drafted = position;
  }

  Result<v4::StepOutput> forward(const v4::StepInput& input) override {
    ++n_forwards;
    if (options_.before_forward) {
      TANDEM_TRY(options_.before_forward(input));
    }
    hashes_.clear();
    input_ = input;
    for (const kernels::Segment& segment : input.segments) {
      TANDEM_TRY(run_segment(segment));
    }
    return logits_of(input.logit_rows);
  }

  Result<v4::DraftOutput> draft(std::span<const v4::DraftSequence> sequences,
                                const v4::DraftSampler& sampler) override {
    v4::DraftOutput out;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      TANDEM_ASSIGN(out.tokens.emplace_back(), draft_one(i, sequences[i], sampler));
    }
    return out;
  }

  std::atomic<int> n_forwards{0};

 private:
  static constexpr std::size_t kRing = 32;

  struct Entry {
    Position position = -1;
    std::uint64_t hash = 0;
  };

  struct Slot {
    std::vector<PageId> pages;
    std::vector<Entry> ring = std::vector<Entry>(kRing);
    Position n_computed = 0;
    Position n_drafted = 0;  // rows that the drafter has seen
  };

  Slot& at(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)]; }
  static std::size_t ring_index(Position p) { return static_cast<std::size_t>(p) % kRing; }

  Result<std::uint64_t*> row(const Slot& slot, Position p) {
    const auto entry = static_cast<std::size_t>(p / options_.sizes.page_tokens);
    if (entry >= slot.pages.size() || slot.pages[entry] < 0) {
      return internal_error("position {} has no page", p);
    }
    const auto page_tokens = static_cast<std::size_t>(options_.sizes.page_tokens);
    return &rows_[static_cast<std::size_t>(slot.pages[entry]) * page_tokens +
                  static_cast<std::size_t>(p) % page_tokens];
  }

  Result<std::uint64_t> hash_before(const Slot& slot, Position p) {
    if (p == 0) {
      return std::uint64_t{1};
    }
    const Entry& entry = slot.ring[ring_index(p - 1)];
    TANDEM_ASSIGN(const std::uint64_t* stored, row(slot, p - 1));
    if (entry.position != p - 1 || entry.hash != *stored) {
      return internal_error("row {} is not what this sequence computed", p - 1);
    }
    return entry.hash;
  }

  Status run_segment(const kernels::Segment& segment) {
    Slot& slot = at(segment.slot);
    TANDEM_ASSIGN(std::uint64_t hash, hash_before(slot, segment.first_position));
    if (slot.n_computed - segment.first_position > options_.sizes.draft_slack) {
      return internal_error("rollback by {} rows", slot.n_computed - segment.first_position);
    }
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      const Position p = segment.first_position + i;
      hash = extend(hash, input_.tokens[static_cast<std::size_t>(segment.first_row + i)]);
      TANDEM_ASSIGN(std::uint64_t * stored, row(slot, p));
      *stored = hash;
      slot.ring[ring_index(p)] = {p, hash};
      hashes_.push_back(hash);
    }
    slot.n_computed = segment.first_position + segment.n_rows;
    return ok_status();
  }

  // Every rank contributes its share, so a rank that runs something else changes the tokens.
  v4::StepOutput logits_of(const std::vector<std::int32_t>& logit_rows) {
    const auto vocab = static_cast<std::size_t>(options_.sizes.vocab);
    logits_.resize(logit_rows.size() * vocab);
    const auto n_ranks = static_cast<std::size_t>(communicator_.size());
    for (std::size_t i = 0; i < logit_rows.size(); ++i) {
      const std::uint64_t hash = hashes_[static_cast<std::size_t>(logit_rows[i])];
      for (std::size_t t = 0; t < vocab; ++t) {
        const bool mine = t % n_ranks == static_cast<std::size_t>(communicator_.rank());
        logits_[i * vocab + t] = mine ? logit(hash, t) : 0.0F;
      }
    }
    communicator_.all_reduce_sum(logits_);
    if (options_.edit_logits) {
      for (std::size_t i = 0; i < logit_rows.size(); ++i) {
        options_.edit_logits(i, input_.tokens[static_cast<std::size_t>(logit_rows[i])],
                             std::span(logits_).subspan(i * vocab, vocab));
      }
    }
    v4::StepOutput out;
    out.logits = logits_;
    out.vocab = options_.sizes.vocab;
    return out;
  }

  Result<std::vector<TokenId>> draft_one(std::size_t index, const v4::DraftSequence& sequence,
                                         const v4::DraftSampler& sampler) {
    const kernels::Segment* found = nullptr;
    for (const kernels::Segment& segment : input_.segments) {
      if (sequence.first_row >= segment.first_row &&
          sequence.first_row + sequence.n_rows <= segment.first_row + segment.n_rows) {
        found = &segment;
      }
    }
    if (found == nullptr || sequence.n_rows < 1) {
      return internal_error("draft rows are not of one segment");
    }
    Slot& slot = at(found->slot);
    const Position first = found->first_position + sequence.first_row - found->first_row;
    if (first != slot.n_drafted) {
      return internal_error("the drafter saw {} rows, then row {}", slot.n_drafted, first);
    }
    slot.n_drafted = first + sequence.n_rows;
    std::uint64_t hash =
        hashes_[static_cast<std::size_t>(sequence.first_row + sequence.n_rows - 1)];
    hash = extend(hash, sequence.next_token);
    std::vector<TokenId> tokens;
    std::vector<float> logits(static_cast<std::size_t>(options_.sizes.vocab));
    for (std::int32_t depth = 0; depth < sequence.n_drafts; ++depth) {
      const bool good = Random(hash ^ 77).uniform() < options_.draft_quality;
      for (std::size_t t = 0; t < logits.size(); ++t) {
        logits[t] = logit(good ? hash : hash ^ 55, t);
      }
      tokens.push_back(sampler(index, depth, logits));
      hash = extend(hash, tokens.back());
    }
    return tokens;
  }

  FakeModelOptions options_;
  comm::Communicator& communicator_;
  std::vector<std::uint64_t> rows_;
  std::vector<Slot> slots_;
  v4::StepInput input_;
  std::vector<std::uint64_t> hashes_;
  std::vector<float> logits_;
};

}  // namespace tandem::testing
