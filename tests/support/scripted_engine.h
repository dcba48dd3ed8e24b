// An Engine that emits what a script says: any tokens, cut into any steps, ending in any way. With
// it the server is tested without a model, at every way the engine can behave.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/runtime/engine.h"

namespace tandem::testing {

struct EngineScript {
  std::vector<TokenId> tokens;        // up to the request's max_tokens are emitted
  std::vector<std::size_t> steps{1};  // tokens per event, round robin
  std::int64_t pause_us = 0;          // before each event
  std::int64_t cached_tokens = 0;
  std::int64_t thinking_tokens = 0;
  Status error;          // not ok: the sequence ends with it after the tokens
  bool endless = false;  // after the tokens nothing happens until it is cancelled
};

// What the engine was asked for.
struct EngineRequest {
  std::string request_id;
  std::vector<TokenId> prompt;
  std::int64_t max_tokens = -1;
  bool constrained = false;
};

class ScriptedEngine final : public runtime::Engine {
 public:
  // Decides the script of a request. Called on the submitting thread.
  using Author = std::function<EngineScript(const runtime::GenerationRequest&)>;

  ScriptedEngine(Author author, runtime::EngineLimits limits);
  ~ScriptedEngine() override;

  Result<SequenceId> submit(runtime::GenerationRequest request, runtime::EventSink sink) override;
  void cancel(SequenceId sequence) override;
  runtime::EngineHealth health() const override;
  runtime::EngineStats stats() const override;
  runtime::EngineLimits limits() const override { return limits_; }

  std::vector<EngineRequest> requests() const;

  // Waits until no sequence runs; false after 10 s.
  bool wait_until_idle() const;

 private:
  struct Sequence {
    EngineScript script;
    runtime::GenerationRequest request;
    runtime::EventSink sink;
    std::size_t at = 0;    // tokens emitted
    std::size_t step = 0;  // events emitted
    bool cancelled = false;
    std::chrono::steady_clock::time_point due;
  };

  void run();
  bool advance(SequenceId id, Sequence& sequence, std::unique_lock<std::mutex>& lock);
  std::size_t limit(const Sequence& sequence) const;
  runtime::Finish finish_of(const Sequence& sequence) const;

  Author author_;
  runtime::EngineLimits limits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool stopping_ = false;
  SequenceId next_id_ = 1;
  std::map<SequenceId, Sequence> running_;
  std::vector<EngineRequest> requests_;
  runtime::EngineStats stats_;
  std::thread thread_;
};

}  // namespace tandem::testing
