// Engine: the only view of the engine that serving has. Requests in, events out.
// The real implementation runs the step loop; tests use one that emits a script.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/grammar/token_constraint.h"
#include "engine/sampling/sampling_params.h"
#include "foundation/base/clock.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::runtime {

// The thinking budget of a sequence that starts inside its thinking part.
struct ThinkingBudget {
  bool starts_in_thinking = false;  // the prompt ends with <think>
  int max_tokens = -1;              // -1: no budget; n: </think> is forced after n thinking tokens
};

struct GenerationRequest {
  std::string request_id;  // for logs and metrics
  std::vector<TokenId> prompt;
  sampling::SamplingParams sampling;
  std::int64_t max_tokens = -1;      // -1: up to the model's context
  std::vector<TokenId> stop_tokens;  // end-of-sequence ids; the stop token is reported as the last
  bool ignore_eos = false;
  bool speculate = true;  // false: nothing is drafted for this sequence; the text is the same
  ThinkingBudget thinking;
  std::unique_ptr<grammar::TokenConstraint> constraint;  // nullptr: free text
  int priority = 0;                                      // higher goes first
  std::string tenant;                                    // key name, for fairness between users
};

struct TokenOutput {
  TokenId token = 0;
  std::optional<float> logprob;              // set if n_logprobs >= 0
  std::vector<sampling::TokenLogprob> best;  // n_logprobs entries, best first
};

enum class FinishReason {
  kStop,       // a stop token, or the constraint allows only the end
  kLength,     // max_tokens or the context limit
  kCancelled,  // Engine::cancel
  kError,      // the engine failed; Finish::error says why
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // prompt tokens that came from the prefix cache
  std::int64_t completion_tokens = 0;
  std::int64_t thinking_tokens = 0;
  std::int64_t drafted_tokens = 0;
  std::int64_t accepted_tokens = 0;
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  Status error;
  Usage usage;
};

// One step's news of one sequence. The last event of a sequence, and only that, has `finish`.
struct GenerationEvent {
  SequenceId sequence = 0;
  std::vector<TokenOutput> tokens;
  std::optional<Finish> finish;
};

// Called on the engine thread, in order. Must not block; must not call the engine.
using EventSink = std::function<void(GenerationEvent)>;

struct RankHealth {
  int rank = 0;
  std::string host;
  bool alive = false;
  TimeUs last_step_age_us = 0;
};

struct EngineHealth {
  bool ok = false;
  std::string verdict;  // one line: "ok", or what is stuck and where
  std::vector<RankHealth> ranks;
};

struct EngineStats {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t prompt_tokens_total = 0;
  std::int64_t cached_tokens_total = 0;
  std::int64_t generation_tokens_total = 0;
  std::int64_t drafted_tokens_total = 0;
  std::int64_t accepted_tokens_total = 0;
  std::vector<std::int64_t> drafted_by_position;   // [max_drafts]
  std::vector<std::int64_t> accepted_by_position;  // [max_drafts]
  std::int64_t steps_total = 0;
  std::int64_t preemptions_total = 0;
  std::int64_t finished_stop_total = 0;
  std::int64_t finished_length_total = 0;
  std::int64_t finished_cancelled_total = 0;
  std::int64_t finished_error_total = 0;
  std::int64_t kv_pages_total = 0;
  std::int64_t kv_pages_used = 0;
};

struct EngineLimits {
  std::int64_t max_context_tokens = 0;
  std::int64_t max_sequences = 0;
  std::int64_t max_waiting = 0;
  int vocab_size = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues a request; events arrive at `sink` until one with `finish`. May be called from any
  // thread.
  // ERRORS: kInvalidArgument (empty prompt, token out of range, prompt longer than the context);
  // kResourceExhausted (the waiting queue is full); kUnavailable (the engine is stopped or
  // poisoned).
  virtual Result<SequenceId> submit(GenerationRequest request, EventSink sink) = 0;

  // Ends a sequence within one step; its last event says kCancelled. Unknown ids are ignored.
  virtual void cancel(SequenceId sequence) = 0;

  virtual EngineHealth health() const = 0;
  virtual EngineStats stats() const = 0;
  virtual EngineLimits limits() const = 0;
};

}  // namespace tandem::runtime
