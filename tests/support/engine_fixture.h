// Runs a ModelEngine over FakeModels on one or two ranks and collects what comes out.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "engine/runtime/model_engine.h"
#include "engine/runtime/worker.h"
#include "tests/support/fake_model.h"
#include "tests/support/thread_communicator.h"

namespace tandem::testing {

struct Collected {
  std::vector<TokenId> tokens;
  std::vector<runtime::TokenOutput> outputs;
  std::optional<runtime::Finish> finish;
  int n_events = 0;
};

class Collector {
 public:
  runtime::EventSink sink(int key) {
    return [this, key](runtime::GenerationEvent event) {
      const std::lock_guard lock(mutex_);
      Collected& entry = entries_[key];
      EXPECT_FALSE(entry.finish.has_value()) << "an event after the last one";
      ++entry.n_events;
      for (runtime::TokenOutput& output : event.tokens) {
        entry.tokens.push_back(output.token);
        entry.outputs.push_back(std::move(output));
      }
      if (event.finish.has_value()) {
        entry.finish = std::move(event.finish);
      }
      changed_.notify_all();
    };
  }

  // Waits for the end of the sequence.
  Collected wait(int key) {
    return wait_until(key, [](const Collected& entry) { return entry.finish.has_value(); });
  }

  Collected wait_for_tokens(int key, std::size_t n) {
    return wait_until(
        key, [n](const Collected& entry) { return entry.tokens.size() >= n || entry.finish; });
  }

 private:
  template <typename Done>
  Collected wait_until(int key, Done done) {
    std::unique_lock lock(mutex_);
    const bool in_time =
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return done(entries_[key]); });
    EXPECT_TRUE(in_time) << "sequence " << key << " does not end";
    return entries_[key];
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Collected> entries_;
};

class TestEngine {
 public:
  TestEngine(const runtime::EngineOptions& options, const FakeModelOptions& model, int n_ranks = 1)
      : job_(std::make_shared<ThreadJob>(n_ranks)) {
    for (int rank = 0; rank < n_ranks; ++rank) {
      communicators_.push_back(std::make_unique<ThreadCommunicator>(job_, rank));
      models_.push_back(std::make_unique<FakeModel>(model, *communicators_.back()));
    }
    worker_status_.resize(static_cast<std::size_t>(n_ranks));
    for (int rank = 1; rank < n_ranks; ++rank) {
      workers_.emplace_back([this, rank, options] { work(rank, options); });
    }
    auto made = runtime::make_engine(options, *models_[0], *communicators_[0]);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    engine_ = std::move(made).value();
  }

  TestEngine(const TestEngine&) = delete;
  TestEngine& operator=(const TestEngine&) = delete;

  ~TestEngine() { static_cast<void>(stop()); }

  Status stop() {
    const Status status = engine_->stop();
    if (!status.ok()) {
      job_->abort(1);
    }
    for (std::thread& worker : workers_) {
      worker.join();
    }
    workers_.clear();
    return status;
  }

  runtime::ModelEngine& operator*() { return *engine_; }
  runtime::ModelEngine* operator->() { return engine_.get(); }
  FakeModel& model(std::size_t rank) { return *models_[rank]; }
  ThreadJob& job() { return *job_; }
  const Status& worker_status(std::size_t rank) const { return worker_status_[rank]; }

  // Submits all and waits for all.
  std::vector<Collected> generate(std::vector<runtime::GenerationRequest> requests) {
    Collector collector;
    int n = 0;
    for (runtime::GenerationRequest& request : requests) {
      const auto id = engine_->submit(std::move(request), collector.sink(n++));
      EXPECT_TRUE(id.ok()) << id.status().to_string();
    }
    std::vector<Collected> all;
    for (int i = 0; i < n; ++i) {
      all.push_back(collector.wait(i));
    }
    return all;
  }

 private:
  void work(int rank, const runtime::EngineOptions& options) {
    const auto index = static_cast<std::size_t>(rank);
    runtime::WorkerOptions worker;
    worker.n_snapshots = options.n_snapshots;
    worker.host = "worker";
    try {
      worker_status_[index] = runtime::run_worker(worker, *models_[index], *communicators_[index]);
    } catch (const JobAborted& aborted) {
      worker_status_[index] = unavailable("aborted with {}", aborted.exit_code);
    }
  }

  std::shared_ptr<ThreadJob> job_;
  std::vector<std::unique_ptr<ThreadCommunicator>> communicators_;
  std::vector<std::unique_ptr<FakeModel>> models_;
  std::vector<Status> worker_status_;
  std::vector<std::thread> workers_;
  std::unique_ptr<runtime::ModelEngine> engine_;
};

inline runtime::GenerationRequest make_request(std::vector<TokenId> prompt,
                                               std::int64_t max_tokens) {
  runtime::GenerationRequest request;
  request.request_id = "test";
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0.0F;
  return request;
}

inline std::vector<TokenId> make_prompt(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<TokenId> prompt(n);
  for (TokenId& token : prompt) {
    token = static_cast<TokenId>(random.below(64));
  }
  return prompt;
}

// What greedy decoding must give, computed without an engine.
inline std::vector<TokenId> greedy_tokens(const std::vector<TokenId>& prompt, std::size_t n) {
  std::uint64_t hash = 1;
  for (const TokenId token : prompt) {
    hash = FakeModel::extend(hash, token);
  }
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < n; ++i) {
    TokenId best = 0;
    for (TokenId t = 1; t < 64; ++t) {
      const auto token = static_cast<std::size_t>(t);
      if (FakeModel::logit(hash, token) > FakeModel::logit(hash, static_cast<std::size_t>(best))) {
        best = t;
      }
    }
    tokens.push_back(best);
    hash = FakeModel::extend(hash, best);
  }
  return tokens;
}

}  // namespace tandem::testing
