// Load: one cell of a benchmark = a number of streams at once, each with its own prompts, and what
// was measured on each stream.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operations/bench/metrics.h"
#include "operations/bench/prompt_scale.h"
#include "operations/bench/statistics.h"

namespace tandem::bench {

struct LoadOptions {
  Target target;
  RequestShape shape;
  int requests_per_stream = 5;
  int warm_up_requests = 1;  // per cell, not counted
  std::uint64_t seed = 1;
  double quiet_s = 5;                       // mixed cells: undisturbed time before each long prompt
  std::int64_t mixed_stream_tokens = 4096;  // mixed cells: longest answer of a running stream
};

struct Cell {
  ContentClass content = ContentClass::kProse;
  int concurrency = 1;
  std::int64_t context_tokens = 0;       // of a prompt; at least what the bare request counts
  bool warm = false;                     // the same prompt again: a prefix that the server knows
  std::int64_t mixed_prompt_tokens = 0;  // > 0: a prompt of this length is read meanwhile
};

// One long prompt that was read while the streams ran.
struct MixedRound {
  std::int64_t long_prompt_tokens = 0;
  double long_ttft_s = 0;
  std::vector<double> kept;  // per stream: arrivals per second meanwhile, as a share of before
  double worst_gap_s = 0;    // longest silence of a stream meanwhile
};

enum class CellEnd { kComplete, kStopped, kServerGone };

struct CellResult {
  Cell cell;
  std::vector<Sample> samples;
  std::vector<MixedRound> rounds;  // of a mixed cell
  std::vector<std::string> errors;
  double wall_s = 0;
  std::optional<DraftCounters> drafts;  // of this cell; nothing if the server has no such metrics
  double quiet_rate = 0;                // mixed cell: tokens per second and stream when undisturbed
  CellEnd end = CellEnd::kComplete;

  double aggregate_rate() const;  // completion tokens of all streams per second of wall time
  Summary ttft() const;
  Summary decode() const;      // tokens per second and stream, after the first token
  Summary gap_median() const;  // over requests: the median gap between arrivals, seconds
  Summary gap_p99() const;
  Summary kept() const;          // over streams and rounds of a mixed cell
  double prompt_tokens() const;  // median
  double cached_tokens() const;  // median
  double tokens_per_arrival() const;
};

// Words of filler for this cell's prompts, and the seed of each: no two requests of a run share one
// unless the cell is warm.
std::string cell_prompt(const LoadOptions& options, const Cell& cell, std::int64_t words,
                        std::uint64_t stream, std::uint64_t request);

// Runs one cell. `scale` is corrected by the warm-up request. `done` is called after each counted
// request. When `stop` becomes true running requests are given up and what was finished is kept.
CellResult run_load_cell(const LoadOptions& options, const Cell& cell, PromptScale& scale,
                         const std::function<void()>& done, const std::atomic<bool>& stop);

// The same for a mixed cell: `concurrency` streams answer without pause; after quiet_s seconds a
// prompt of mixed_prompt_tokens is read, requests_per_stream times. A running stream's tokens are
// known only at its end, so rates are arrivals times the tokens per arrival of the warm-up.
CellResult run_mixed_cell(const LoadOptions& options, const Cell& cell, PromptScale& scale,
                          const std::function<void()>& done, const std::atomic<bool>& stop);

// True if the server does not even accept connections any more.
bool server_is_gone(const Target& target, const std::atomic<bool>& stop);

}  // namespace tandem::bench
