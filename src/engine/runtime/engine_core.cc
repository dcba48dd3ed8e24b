#include "engine/runtime/engine_core.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace tandem::runtime {

EngineCore::EngineCore(const EngineOptions& options, ForwardModel& model,
                       comm::Communicator& communicator, std::vector<std::string> hosts)
    : options_(options),
      sizes_(model.sizes()),
      clock_(options.clock != nullptr ? *options.clock : system_clock()),
      hosts_(std::move(hosts)),
      loop_(options, model, communicator, events_,
            [this](const EngineStats& stats) { set_stats(stats); }) {
  last_done_us_ = clock_.now_us();
}

void EngineCore::start(const std::shared_ptr<EngineCore>& self) {
  const std::lock_guard lock(self->mutex_);
  self->engine_thread_ = std::thread([self] { self->run(); });
  if (self->options_.stall_us > 0) {
    self->watchdog_thread_ = std::thread([self] { self->watch(); });
  }
}

EngineLimits EngineCore::limits() const {
  EngineLimits limits;
  limits.max_context_tokens =
      std::min(sizes_.max_context_tokens, sizes_.n_pages * sizes_.page_tokens);
  limits.max_sequences = sizes_.n_slots;
  limits.max_waiting = options_.max_waiting;
  limits.vocab_size = sizes_.vocab;
  return limits;
}

Status EngineCore::validate(const GenerationRequest& request) const {
  const auto n_prompt = static_cast<std::int64_t>(request.prompt.size());
  if (n_prompt == 0) {
    return invalid_argument("the prompt is empty; it needs at least one token");
  }
  const std::int64_t context = limits().max_context_tokens;
  if (n_prompt >= context) {
    return invalid_argument(
        "the prompt has {} tokens; the context of {} tokens leaves room for an answer up to {}",
        n_prompt, context, context - 1);
  }
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= sizes_.vocab) {
      return invalid_argument("the prompt has the token {}, expected 0 to {}", token,
                              sizes_.vocab - 1);
    }
  }
  if (request.max_tokens == 0 || request.max_tokens < -1) {
    return invalid_argument("max_tokens is {}, expected at least 1", request.max_tokens);
  }
  return sampling::validate(request.sampling, sizes_.vocab);
}

Result<SequenceId> EngineCore::submit(GenerationRequest request, EventSink sink) {
  TANDEM_TRY(validate(request));
  const std::lock_guard lock(mutex_);
  if (!fault_.ok()) {
    return unavailable("the engine has failed: {}", fault_.message());
  }
  if (stopping_) {
    return unavailable("the engine is stopping");
  }
  if (n_waiting_ >= options_.max_waiting) {
    return resource_exhausted("{} requests are waiting, the most that max_waiting allows; retry",
                              n_waiting_);
  }
  Command command;
  command.id = next_id_++;
  events_.open(command.id, std::move(sink), static_cast<std::int64_t>(request.prompt.size()));
  command.request.emplace(std::move(request));
  ++n_waiting_;
  const SequenceId id = command.id;
  inbox_.push_back(std::move(command));
  changed_.notify_all();
  return id;
}

void EngineCore::set_stats(const EngineStats& stats) {
  const std::lock_guard lock(mutex_);
  stats_ = stats;
  n_waiting_ = stats.waiting;
  for (const Command& command : inbox_) {
    n_waiting_ += command.request.has_value() ? 1 : 0;
  }
}

void EngineCore::cancel(SequenceId sequence) {
  const std::lock_guard lock(mutex_);
  Command command;
  command.id = sequence;
  inbox_.push_back(std::move(command));
  changed_.notify_all();
}

// False: stop. Sleeps while there is nothing to do, but not longer than to the next heartbeat.
bool EngineCore::wait_for_work(std::vector<Command>& commands) {
  std::unique_lock lock(mutex_);
  if (loop_.idle()) {
    changed_.wait_for(lock, std::chrono::microseconds(options_.heartbeat_us),
                      [this] { return stopping_ || !inbox_.empty(); });
  }
  if (stopping_ || !fault_.ok()) {
    return false;
  }
  commands.assign(std::make_move_iterator(inbox_.begin()), std::make_move_iterator(inbox_.end()));
  inbox_.clear();
  busy_since_ = clock_.now_us();
  return true;
}

Status EngineCore::run_once() {
  if (!loop_.idle()) {
    return loop_.step();
  }
  loop_.heartbeat();
  return ok_status();
}

Status EngineCore::run_loop() {
  std::vector<Command> commands;
  while (wait_for_work(commands)) {
    const bool had_commands = !commands.empty();
    for (Command& command : commands) {
      if (command.request.has_value()) {
        loop_.add(command.id, *std::move(command.request));
      } else {
        loop_.cancel(command.id);
      }
    }
    commands.clear();
    if (!loop_.idle() || !had_commands) {
      TANDEM_TRY(run_once());
    }
    const std::lock_guard lock(mutex_);
    busy_since_ = -1;
    last_done_us_ = clock_.now_us();
  }
  return ok_status();
}

void EngineCore::run() {
  Status status;
  try {
    status = run_loop();
  } catch (const std::exception& error) {
    status = internal_error("the engine thread failed: {}", error.what());
  }
  if (!status.ok()) {
    poison(status);
  } else {
    events_.fail_all(unavailable("the engine is stopping"));
    if (!poisoned()) {
      loop_.shutdown();
    }
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  busy_since_ = -1;
  changed_.notify_all();
}

bool EngineCore::poisoned() const {
  const std::lock_guard lock(mutex_);
  return !fault_.ok();
}

// Only the first fault counts; the others are its consequences.
void EngineCore::poison(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!fault_.ok()) {
      return;
    }
    fault_ = status;
    changed_.notify_all();
  }
  events_.fail_all(status);
  if (options_.on_fault) {
    options_.on_fault(status);
  }
}

// A rank that is lost leaves the engine thread inside a collective for ever, so somebody else has
// to tell the streams.
void EngineCore::watch() {
  constexpr auto kInterval = std::chrono::milliseconds(250);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, kInterval, [this] { return done_; });
    if (done_ || !fault_.ok()) {
      return;
    }
    const TimeUs now = clock_.now_us();
    if (busy_since_ >= 0 && now - busy_since_ > options_.stall_us) {
      const Status status = unavailable("{}", verdict(now));
      lock.unlock();
      poison(status);
      return;
    }
  }
}

std::string EngineCore::verdict(TimeUs now) const {
  if (!fault_.ok()) {
    return fault_.message();
  }
  if (busy_since_ >= 0 && options_.stall_us > 0 && now - busy_since_ > options_.stall_us) {
    return fmt::format("step {} has been running for {} s on {} rank(s): a rank is lost or stuck",
                       stats_.steps_total + 1, (now - busy_since_) / 1'000'000, hosts_.size());
  }
  return stopping_ ? "the engine is stopping" : "ok";
}

EngineHealth EngineCore::health() const {
  const std::lock_guard lock(mutex_);
  const TimeUs now = clock_.now_us();
  EngineHealth health;
  health.verdict = verdict(now);
  health.ok = health.verdict == "ok";
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) {
    RankHealth entry;
    entry.rank = static_cast<int>(rank);
    entry.host = hosts_[rank];
    entry.alive = fault_.ok() && (health.ok || stopping_);
    entry.last_step_age_us = now - last_done_us_;
    health.ranks.push_back(std::move(entry));
  }
  return health;
}

EngineStats EngineCore::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  stats.waiting = n_waiting_;
  return stats;
}

Status EngineCore::stop() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  const bool ended = changed_.wait_for(lock, std::chrono::microseconds(options_.stop_us),
                                       [this] { return done_; });
  std::thread engine = std::exchange(engine_thread_, {});
  std::thread watchdog = std::exchange(watchdog_thread_, {});
  const Status fault = fault_;
  lock.unlock();
  if (watchdog.joinable()) {
    ended ? watchdog.join() : watchdog.detach();
  }
  if (engine.joinable()) {
    ended ? engine.join() : engine.detach();
  }
  if (!ended) {
    events_.fail_all(unavailable("the engine is stopping"));
    return fault.ok() ? deadline_exceeded("the step that runs did not end in {} s; end the job",
                                          options_.stop_us / 1'000'000)
                      : fault;
  }
  return fault;
}

}  // namespace tandem::runtime
