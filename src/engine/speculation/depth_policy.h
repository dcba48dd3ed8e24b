// DepthPolicy: how many drafts are worth verifying. A draft is worth its row if the tokens it is
// expected to add, per time that the longer step takes, beat going without it; the drafts of all
// sequences compete for the rows of one step. SOURCE: model.md 2.15 (f).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/cost_table.h"

namespace tandem::speculation {

struct DepthOptions {
  std::int32_t max_drafts = 0;
  bool adaptive = true;  // false: always max_drafts
  CostOptions cost;
};

// Per draft position.
struct PositionCounters {
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
};

class DepthPolicy {
 public:
  explicit DepthPolicy(const DepthOptions& options);

  // Before drafting: how many drafts each sequence shall get, at most its room.
  std::vector<std::int32_t> depths(std::span<const std::int32_t> rooms) const;

  // After drafting: how many of each sequence's drafts to verify, from what the drafter thinks of
  // each, in (0, 1).
  std::vector<std::int32_t> cut(const std::vector<std::vector<float>>& confidences) const;

  // The outcome of one verified block.
  void record_block(std::int32_t n_drafted, std::int32_t n_accepted);
  // A step of decode rows only.
  void record_step(std::int64_t n_rows, double step_us);
  // A draft pass that gave up to `depth` tokens to each sequence.
  void record_draft(std::int32_t depth, double draft_us);

  const std::vector<PositionCounters>& counters() const { return counters_; }
  // Estimated probability that a draft at this position is accepted if those before it were.
  double acceptance(std::int32_t position) const {
    return acceptance_[static_cast<std::size_t>(position)];
  }

 private:
  // survival[r][j]: probability that drafts 0..j of sequence r are all accepted.
  std::vector<std::int32_t> choose(const std::vector<std::vector<double>>& survival,
                                   double us_per_depth) const;

  DepthOptions options_;
  CostTable costs_;
  double draft_us_ = 0.0;  // per draft pass
  std::vector<double> acceptance_;
  std::vector<PositionCounters> counters_;
  std::int64_t n_steps_ = 0;
};

}  // namespace tandem::speculation
