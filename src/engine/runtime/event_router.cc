#include "engine/runtime/event_router.h"

#include <utility>

namespace tandem::runtime {

void EventRouter::open(SequenceId id, EventSink sink, std::int64_t n_prompt) {
  const std::lock_guard lock(mutex_);
  Route route;
  route.sink = std::move(sink);
  route.usage.prompt_tokens = n_prompt;
  routes_.emplace(id, std::move(route));
}

void EventRouter::send(GenerationEvent event) {
  const std::lock_guard lock(mutex_);
  const auto found = routes_.find(event.sequence);
  if (found == routes_.end()) {
    return;
  }
  Route& route = found->second;
  route.usage.completion_tokens += static_cast<std::int64_t>(event.tokens.size());
  const bool last = event.finish.has_value();
  route.sink(std::move(event));
  if (last) {
    routes_.erase(found);
  }
}

void EventRouter::fail_all(const Status& status) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : std::exchange(routes_, {})) {
    GenerationEvent event;
    event.sequence = entry.first;
    event.finish.emplace();
    event.finish->reason = FinishReason::kError;
    event.finish->error = status;
    event.finish->usage = entry.second.usage;
    entry.second.sink(std::move(event));
  }
}

}  // namespace tandem::runtime
