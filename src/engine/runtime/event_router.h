// EventRouter: brings events to the sinks of their sequences. Every sequence gets exactly one event
// with `finish`, whoever ends it; what comes after that is dropped.
#pragma once

#include <map>
#include <mutex>

#include "engine/runtime/engine.h"

namespace tandem::runtime {

class EventRouter {
 public:
  void open(SequenceId id, EventSink sink, std::int64_t n_prompt);

  void send(GenerationEvent event);

  // Ends every open sequence with kError and `status`.
  void fail_all(const Status& status);

 private:
  struct Route {
    EventSink sink;
    Usage usage;  // what is known without the step loop
  };

  std::mutex mutex_;
  std::map<SequenceId, Route> routes_;
};

}  // namespace tandem::runtime
