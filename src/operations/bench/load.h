// Load: one cell of a benchmark = a number of streams at once, each with its own prompts, and what
// was measured on each stream. Tokens are counted by the server's usage, never by chunks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foundation/net/http_client.h"
#include "operations/bench/prompts.h"
#include "operations/bench/statistics.h"

namespace tandem::bench {

struct LoadOptions {
  net::Url url;
  std::string api_key;
  std::string model;
  std::int64_t timeout_ms = 600'000;
  std::int64_t max_tokens = 128;
  int requests_per_stream = 3;
  int warm_up_requests = 1;
  std::uint64_t seed = 1;
};

struct Cell {
  ContentClass content = ContentClass::kProse;
  int concurrency = 1;
  std::int64_t context_words = 0;  // filler before the request
  bool repeat_prompt = false;      // the same prompt again: a warm prefix
};

struct Sample {
  double ttft_s = 0;
  double total_s = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;

  // Tokens per second after the first.
  double decode_rate() const;
};

struct CellResult {
  Cell cell;
  std::vector<Sample> samples;
  std::vector<std::string> errors;
  double wall_s = 0;
  double drafted = 0;  // from the server's metrics, 0 if it has none
  double accepted = 0;
  bool interrupted = false;

  double aggregate_rate() const;  // completion tokens of all streams per second of wall time
  Summary ttft() const;
  Summary decode() const;
  double prompt_tokens() const;  // mean
};

// Runs one cell. `done` is called after each finished request. When `stop` becomes true running
// streams are closed, and what was finished is kept.
CellResult run_cell(const LoadOptions& options, const Cell& cell, const std::function<void()>& done,
                    const std::atomic<bool>& stop);

}  // namespace tandem::bench
