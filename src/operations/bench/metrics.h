// What the server's own metrics say about speculation, read before and after a cell.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "operations/bench/sample.h"

namespace tandem::bench {

struct DraftCounters {
  double drafted = 0;   // tokens
  double accepted = 0;  // tokens
};

// Sum over all labels of a metric in Prometheus text; nothing if it does not occur.
std::optional<double> metric_sum(std::string_view text, std::string_view name);

// The counters vllm:spec_decode_num_draft_tokens_total and ..._accepted_tokens_total (vLLM and
// tandem serve); nothing if GET /metrics lacks them.
std::optional<DraftCounters> read_draft_counters(const Target& target,
                                                 const std::atomic<bool>& stop);

}  // namespace tandem::bench
