#include "tests/support/scripted_engine.h"

#include <algorithm>
#include <utility>

namespace tandem::testing {

ScriptedEngine::ScriptedEngine(Author author, runtime::EngineLimits limits)
    : author_(std::move(author)), limits_(limits), thread_([this] { run(); }) {}

ScriptedEngine::~ScriptedEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<SequenceId> ScriptedEngine::submit(runtime::GenerationRequest request,
                                          runtime::EventSink sink) {
  EngineScript script = author_(request);
  const std::lock_guard lock(mutex_);
  requests_.push_back(
      {request.request_id, request.prompt, request.max_tokens, request.constraint != nullptr});
  stats_.prompt_tokens_total += static_cast<std::int64_t>(request.prompt.size());
  stats_.cached_tokens_total += script.cached_tokens;
  const SequenceId id = next_id_++;
  Sequence& sequence = running_[id];
  sequence.due = std::chrono::steady_clock::now() + std::chrono::microseconds(script.pause_us);
  sequence.script = std::move(script);
  sequence.request = std::move(request);
  sequence.sink = std::move(sink);
  changed_.notify_all();
  return id;
}

void ScriptedEngine::cancel(SequenceId sequence) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(sequence);
  if (found != running_.end()) {
    found->second.cancelled = true;
    changed_.notify_all();
  }
}

runtime::EngineHealth ScriptedEngine::health() const {
  runtime::EngineHealth health;
  health.ok = true;
  health.verdict = "ok";
  return health;
}

runtime::EngineStats ScriptedEngine::stats() const {
  const std::lock_guard lock(mutex_);
  runtime::EngineStats stats = stats_;
  stats.running = static_cast<std::int64_t>(running_.size());
  return stats;
}

std::vector<EngineRequest> ScriptedEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

bool ScriptedEngine::wait_until_idle() const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return running_.empty(); });
}

std::size_t ScriptedEngine::limit(const Sequence& sequence) const {
  const std::size_t all = sequence.script.tokens.size();
  return sequence.request.max_tokens < 0
             ? all
             : std::min(all, static_cast<std::size_t>(sequence.request.max_tokens));
}

runtime::Finish ScriptedEngine::finish_of(const Sequence& sequence) const {
  runtime::Finish finish;
  finish.usage.prompt_tokens = static_cast<std::int64_t>(sequence.request.prompt.size());
  finish.usage.cached_tokens = sequence.script.cached_tokens;
  finish.usage.completion_tokens = static_cast<std::int64_t>(sequence.at);
  finish.usage.thinking_tokens =
      std::min(sequence.script.thinking_tokens, finish.usage.completion_tokens);
  if (sequence.cancelled) {
    finish.reason = runtime::FinishReason::kCancelled;
  } else if (!sequence.script.error.ok()) {
    finish.reason = runtime::FinishReason::kError;
    finish.error = sequence.script.error;
  } else if (sequence.at < sequence.script.tokens.size()) {
    finish.reason = runtime::FinishReason::kLength;
  }
  return finish;
}

// Emits the next event of a sequence; true if it was the last one.
bool ScriptedEngine::advance(SequenceId id, Sequence& sequence,
                             std::unique_lock<std::mutex>& lock) {
  runtime::GenerationEvent event;
  event.sequence = id;
  const std::size_t end = limit(sequence);
  if (!sequence.cancelled) {
    const std::vector<std::size_t>& steps = sequence.script.steps;
    const std::size_t size = std::min(steps[sequence.step++ % steps.size()], end - sequence.at);
    for (std::size_t i = 0; i < size; ++i) {
      runtime::TokenOutput output;
      output.token = sequence.script.tokens[sequence.at++];
      event.tokens.push_back(std::move(output));
    }
    stats_.generation_tokens_total += static_cast<std::int64_t>(size);
  }
  const bool is_last = sequence.cancelled || (sequence.at == end && !sequence.script.endless);
  if (is_last) {
    event.finish = finish_of(sequence);
  }
  const runtime::EventSink sink = sequence.sink;
  lock.unlock();
  if (is_last || !event.tokens.empty()) {
    sink(std::move(event));
  }
  lock.lock();
  return is_last;
}

void ScriptedEngine::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = std::chrono::steady_clock::now();
    auto wake = now + std::chrono::seconds(1);
    std::vector<SequenceId> due;
    for (const auto& [id, sequence] : running_) {
      const bool rests = sequence.script.endless && sequence.at == limit(sequence);
      if (sequence.cancelled || (!rests && sequence.due <= now)) {
        due.push_back(id);
      } else if (!rests) {
        wake = std::min(wake, sequence.due);
      }
    }
    for (const SequenceId id : due) {
      Sequence& sequence = running_.at(id);
      if (advance(id, sequence, lock)) {
        running_.erase(id);
        changed_.notify_all();
      } else {
        sequence.due = now + std::chrono::microseconds(sequence.script.pause_us);
        wake = std::min(wake, sequence.due);
      }
    }
    if (due.empty()) {
      changed_.wait_until(lock, wake);
    }
  }
}

}  // namespace tandem::testing
