// EngineOptions: what decides how the step loop runs, besides the model's own sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "foundation/base/clock.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::runtime {

struct EngineOptions {
  std::int64_t max_waiting = 256;
  std::int32_t prefill_tokens = 8192;      // prompt rows per step while nothing decodes
  std::int32_t prefill_tokens_busy = 512;  // prompt rows per step next to running streams
  std::int32_t max_partial_prefills = 4;   // prompts that share a step
  std::int64_t reserve_new_tokens = 1024;  // output reserved at admission
  double decode_share = 0.6;               // rate that streams keep while prompts are read
  std::int32_t max_drafts = 0;             // per sequence and step; 0: no speculation
  bool adaptive_drafts = true;             // fewer drafts where they do not pay
  std::int32_t n_snapshots = 0;            // places of the snapshot store; 0: no prefix cache
  std::int64_t snapshot_interval = 2048;   // tokens between snapshots inside a long prompt
  TokenId think_end_token = -1;            // </think>; -1: thinking budgets are ignored
  std::uint64_t seed = 0;                  // mixed into the seeds of requests without one
  std::string host;                        // of this rank, for health
  TimeUs heartbeat_us = 1'000'000;         // idle ranks answer this often
  TimeUs stall_us = 30'000'000;            // a step that takes longer is a fault; 0: never
  TimeUs stop_us = 10'000'000;             // how long stop() waits for the step that runs
  // Called once, after the streams have got their error, when the engine is poisoned. From an
  // engine thread; must not call the engine.
  std::function<void(const Status&)> on_fault;
  const Clock* clock = nullptr;  // nullptr: system_clock()
};

}  // namespace tandem::runtime
