// EngineCore: what the threads of a ModelEngine share. It lives as long as the last of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/runtime/engine.h"
#include "engine/runtime/engine_options.h"
#include "engine/runtime/event_router.h"
#include "engine/runtime/step_loop.h"

namespace tandem::runtime {

class EngineCore {
 public:
  EngineCore(const EngineOptions& options, ForwardModel& model, comm::Communicator& communicator,
             std::vector<std::string> hosts);

  // Starts the threads, which keep `self` alive.
  static void start(const std::shared_ptr<EngineCore>& self);

  Result<SequenceId> submit(GenerationRequest request, EventSink sink);
  void cancel(SequenceId sequence);
  EngineHealth health() const;
  EngineStats stats() const;
  EngineLimits limits() const;
  Status stop();

 private:
  struct Command {
    SequenceId id = 0;
    std::optional<GenerationRequest> request;  // nothing: cancel
  };

  Status validate(const GenerationRequest& request) const;
  void run();
  Status run_loop();
  Status run_once();
  bool wait_for_work(std::vector<Command>& commands);
  void watch();
  void poison(const Status& status);
  bool poisoned() const;
  void set_stats(const EngineStats& stats);
  std::string verdict(TimeUs now) const;

  EngineOptions options_;
  ForwardSizes sizes_;
  const Clock& clock_;
  std::vector<std::string> hosts_;
  EventRouter events_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> inbox_;
  std::int64_t n_waiting_ = 0;  // requests that have not got a slot, the inbox included
  SequenceId next_id_ = 1;
  bool stopping_ = false;
  bool done_ = false;        // the engine thread has left its loop
  Status fault_;             // not ok: poisoned
  TimeUs busy_since_ = -1;   // start of the step or heartbeat that runs; -1: none
  TimeUs last_done_us_ = 0;  // when all ranks were last known to answer
  EngineStats stats_;
  StepLoop loop_;  // engine thread only; after the fields that its stats go to
  std::thread engine_thread_;
  std::thread watchdog_thread_;
};

}  // namespace tandem::runtime
