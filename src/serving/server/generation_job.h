// GenerationJob: one request from submit to the last byte. Turns the engine's events into decoded
// events, those into the Reply's frames, and a client that leaves into a cancellation.
//
// All work happens on the exchange's own order; the engine thread only posts to it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "foundation/base/clock.h"
#include "serving/http/exchange.h"
#include "serving/protocol/reply.h"
#include "serving/server/prepared_task.h"
#include "serving/server/rate_limiter.h"
#include "serving/server/request_metrics.h"

namespace tandem::server {

class GenerationJob;

// The jobs that run, so that time and the server's end can reach them. Thread-safe.
class JobSet {
 public:
  void add(const std::shared_ptr<GenerationJob>& job);
  void remove(GenerationJob* job);
  // Lets every job look at the clock: heartbeats.
  void tick();
  // Ends every job with this error.
  void end_all(const Status& why);

 private:
  std::vector<std::shared_ptr<GenerationJob>> all() const;

  mutable std::mutex mutex_;
  std::map<GenerationJob*, std::weak_ptr<GenerationJob>> jobs_;
};

// What a job needs of the server. All outlive it.
struct JobParts {
  runtime::Engine& engine;
  const Clock& clock;
  RequestMetrics& metrics;
  JobSet& jobs;
  RateLimiter& limiter;
  TimeUs heartbeat_us;
};

class GenerationJob : public std::enable_shared_from_this<GenerationJob> {
 public:
  // `id` names the request in logs and makes call ids unique; `owner` is the key to charge.
  GenerationJob(http::ExchangePtr exchange, PreparedTask prepared,
                std::unique_ptr<protocol::Reply> reply, const PrepareParts& prepare,
                const JobParts& parts, std::string id, std::string owner);
  ~GenerationJob();
  GenerationJob(const GenerationJob&) = delete;
  GenerationJob& operator=(const GenerationJob&) = delete;

  // Submits all choices; answers with an error if the engine refuses one. `headers` go out with the
  // answer. Call where the exchange's callbacks run.
  void start(http::Headers headers);

  // From any thread.
  void tick();
  void end(const Status& why);

 private:
  struct Choice {
    SequenceId sequence = 0;
    std::unique_ptr<text::StreamDecoder> decoder;
    std::optional<std::string> stop;
    bool done = false;
  };

  void on_event(std::size_t index, const runtime::GenerationEvent& event);
  void feed(std::size_t index, const std::vector<runtime::TokenOutput>& tokens);
  void emit(std::size_t index, const std::vector<text::StreamEvent>& events,
            std::span<const runtime::TokenOutput> tokens);
  void finish_choice(std::size_t index, const runtime::Finish& finish);
  void finish();
  void fail(const protocol::ApiError& error);
  void send(std::string frames);
  void cancel_all();
  void charge();
  void note_arrival();
  Status submit_all();

  http::ExchangePtr exchange_;
  PreparedTask prepared_;
  std::unique_ptr<protocol::Reply> reply_;
  PrepareParts prepare_;
  JobParts parts_;
  std::string id_;
  std::string owner_;
  http::Headers headers_;
  std::vector<Choice> choices_;
  runtime::Usage usage_;
  std::size_t n_done_ = 0;
  bool over_ = false;
  TimeUs started_us_ = 0;
  TimeUs last_arrival_us_ = -1;  // -1: no token yet
  TimeUs last_sent_us_ = 0;
};

}  // namespace tandem::server
