#include "engine/speculation/depth_policy.h"

#include <algorithm>

namespace tandem::speculation {
namespace {

constexpr double kPrior = 0.7;
constexpr double kNewWeight = 0.02;
// Without drafts there is nothing to learn from, so one is tried this often whatever it costs.
constexpr std::int64_t kProbeSteps = 64;

struct Candidate {
  double survival;
  std::size_t sequence;
  std::int32_t depth;  // 1: its first draft
};

}  // namespace

DepthPolicy::DepthPolicy(const DepthOptions& options)
    : options_(options),
      costs_(options.cost),
      acceptance_(static_cast<std::size_t>(options.max_drafts), kPrior),
      counters_(static_cast<std::size_t>(options.max_drafts)) {}

// Candidates in order of survival; a deeper draft never survives better than the one before it, so
// the order keeps blocks contiguous. Stops at the first that does not pay: that keeps the choice
// independent of the drafts behind it.
std::vector<std::int32_t> DepthPolicy::choose(const std::vector<std::vector<double>>& survival,
                                              double us_per_depth) const {
  std::vector<Candidate> candidates;
  for (std::size_t r = 0; r < survival.size(); ++r) {
    for (std::size_t j = 0; j < survival[r].size(); ++j) {
      candidates.push_back({survival[r][j], r, static_cast<std::int32_t>(j) + 1});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.survival != b.survival ? a.survival > b.survival : a.depth < b.depth;
                   });
  std::vector<std::int32_t> depths(survival.size(), 0);
  auto n_rows = static_cast<std::int64_t>(survival.size());
  auto tokens = static_cast<double>(survival.size());
  double best = tokens / costs_.step_us(n_rows);
  std::int32_t deepest = 0;
  for (const Candidate& candidate : candidates) {
    ++n_rows;
    tokens += candidate.survival;
    deepest = std::max(deepest, candidate.depth);
    const double rate = tokens / (costs_.step_us(n_rows) + us_per_depth * deepest);
    if (rate <= best) {
      break;
    }
    best = rate;
    depths[candidate.sequence] = candidate.depth;
  }
  return depths;
}

std::vector<std::int32_t> DepthPolicy::depths(std::span<const std::int32_t> rooms) const {
  std::vector<std::vector<double>> survival(rooms.size());
  const bool probe = n_steps_ % kProbeSteps == 0;
  std::vector<std::int32_t> limits;
  for (std::size_t r = 0; r < rooms.size(); ++r) {
    const std::int32_t limit = std::clamp(rooms[r], 0, options_.max_drafts);
    limits.push_back(limit);
    double alive = 1.0;
    for (std::int32_t j = 0; j < limit; ++j) {
      alive *= acceptance(j);
      survival[r].push_back(alive);
    }
  }
  if (!options_.adaptive || probe) {
    return limits;
  }
  return choose(survival, draft_us_);
}

std::vector<std::int32_t> DepthPolicy::cut(
    const std::vector<std::vector<float>>& confidences) const {
  std::vector<std::vector<double>> survival(confidences.size());
  std::vector<std::int32_t> all;
  for (std::size_t r = 0; r < confidences.size(); ++r) {
    double alive = 1.0;
    for (const float confidence : confidences[r]) {
      alive *= static_cast<double>(confidence);
      survival[r].push_back(alive);
    }
    all.push_back(static_cast<std::int32_t>(confidences[r].size()));
  }
  // The drafts are made already; only their rows cost.
  return options_.adaptive && n_steps_ % kProbeSteps != 0 ? choose(survival, 0.0) : all;
}

void DepthPolicy::record_block(std::int32_t n_drafted, std::int32_t n_accepted) {
  for (std::int32_t j = 0; j < std::min(n_drafted, options_.max_drafts); ++j) {
    PositionCounters& counter = counters_[static_cast<std::size_t>(j)];
    const bool accepted = j < n_accepted;
    ++counter.drafted;
    counter.accepted += accepted ? 1 : 0;
    if (j > n_accepted) {
      continue;  // drafts behind a rejected one say nothing
    }
    double& estimate = acceptance_[static_cast<std::size_t>(j)];
    estimate += kNewWeight * ((accepted ? 1.0 : 0.0) - estimate);
  }
}

void DepthPolicy::record_step(std::int64_t n_rows, double step_us) {
  ++n_steps_;
  costs_.record(n_rows, step_us);
}

void DepthPolicy::record_draft(std::int32_t depth, double draft_us) {
  constexpr double kDraftWeight = 0.1;
  if (depth > 0) {
    const double each = draft_us / depth;
    draft_us_ += (draft_us_ == 0.0 ? 1.0 : kDraftWeight) * (each - draft_us_);
  }
}

}  // namespace tandem::speculation
