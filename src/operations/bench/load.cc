#include "operations/bench/load.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "foundation/base/random.h"

namespace tandem::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kWarmUpStream = 1'000'000;

class LoadRun {
 public:
  LoadRun(const LoadOptions& options, const Cell& cell, PromptScale& scale,
          const std::function<void()>& done, const std::atomic<bool>& stop)
      : options_(options), scale_(scale), done_(done), stop_(stop) {
    result_.cell = cell;
  }

  CellResult run() {
    words_ = scale_.words_for(result_.cell.context_tokens);
    warm_up();
    const auto before = read_draft_counters(options_.target, stop_);
    const auto start = SteadyClock::now();
    std::vector<std::jthread> streams;
    for (int stream = 0; stream < result_.cell.concurrency; ++stream) {
      streams.emplace_back([this, stream] { run_stream(stream); });
    }
    streams.clear();
    result_.wall_s = std::chrono::duration<double>(SteadyClock::now() - start).count();
    const auto after = read_draft_counters(options_.target, stop_);
    if (before.has_value() && after.has_value()) {
      result_.drafts =
          DraftCounters{after->drafted - before->drafted, after->accepted - before->accepted};
    }
    if (gone_.load()) {
      result_.end = CellEnd::kServerGone;
    } else if (stop_.load()) {
      result_.end = CellEnd::kStopped;
    }
    return std::move(result_);
  }

 private:
  bool over() const { return stop_.load() || gone_.load(); }

  // A warm cell needs its prompt read once; a cold one gets a prompt of the real length, whose
  // count corrects the length of the others.
  void warm_up() {
    const int rounds = std::max(options_.warm_up_requests, result_.cell.warm ? 1 : 0);
    for (int i = 0; i < rounds && !over(); ++i) {
      const auto sample =
          send(kWarmUpStream, static_cast<std::uint64_t>(result_.cell.warm ? 0 : i));
      if (sample.ok() && i == 0 && !result_.cell.warm) {
        scale_.correct(words_, sample->prompt_tokens);
        words_ = scale_.words_for(result_.cell.context_tokens);
      }
      record(sample, false);
    }
  }

  Result<Sample> send(std::uint64_t stream, std::uint64_t request) {
    const std::string prompt = cell_prompt(options_, result_.cell, words_, stream, request);
    return stream_request(options_.target, options_.shape, prompt, stop_);
  }

  void run_stream(int stream) {
    for (int i = 0; i < options_.requests_per_stream && !over(); ++i) {
      record(send(static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(i)), true);
    }
  }

  void record(const Result<Sample>& sample, bool counted) {
    if (sample.status().code() == StatusCode::kCancelled) {
      return;
    }
    if (sample.status().code() == StatusCode::kUnavailable &&
        server_is_gone(options_.target, stop_)) {
      gone_ = true;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!sample.ok()) {
      result_.errors.push_back(sample.status().to_string());
    } else if (counted) {
      result_.samples.push_back(*sample);
    }
    if (counted) {
      done_();
    }
  }

  const LoadOptions& options_;
  PromptScale& scale_;
  const std::function<void()>& done_;
  const std::atomic<bool>& stop_;
  std::atomic<bool> gone_{false};
  std::int64_t words_ = 0;
  std::mutex mutex_;
  CellResult result_;
};

template <typename Figure>
Summary summary_of(const std::vector<Sample>& samples, Figure figure) {
  std::vector<double> values;
  values.reserve(samples.size());
  for (const Sample& sample : samples) {
    values.push_back(figure(sample));
  }
  return summarise(std::move(values));
}

}  // namespace

std::string cell_prompt(const LoadOptions& options, const Cell& cell, std::int64_t words,
                        std::uint64_t stream, std::uint64_t request) {
  const std::uint64_t shape =
      static_cast<std::uint64_t>(cell.concurrency) << 44 ^
      static_cast<std::uint64_t>(cell.context_tokens) << 12 ^
      static_cast<std::uint64_t>(cell.mixed_prompt_tokens > 0 ? 1 : 0) << 8 ^
      static_cast<std::uint64_t>(cell.warm ? 1 : 0) << 4 ^ static_cast<std::uint64_t>(cell.content);
  const std::uint64_t key = cell.warm ? 0 : stream * 100'000 + request + 1;
  return make_prompt(cell.content, mix64(options.seed ^ mix64(shape) ^ mix64(key)), words);
}

bool server_is_gone(const Target& target, const std::atomic<bool>& stop) {
  return fetch_text(target, "/v1/models", "", stop).status().code() == StatusCode::kUnavailable;
}

double CellResult::aggregate_rate() const {
  double tokens = 0;
  for (const Sample& sample : samples) {
    tokens += static_cast<double>(sample.completion_tokens);
  }
  return wall_s > 0 ? tokens / wall_s : 0;
}

Summary CellResult::ttft() const {
  return summary_of(samples, [](const Sample& s) { return s.ttft_s; });
}

Summary CellResult::decode() const {
  return summary_of(samples, [](const Sample& s) { return s.decode_rate(); });
}

Summary CellResult::gap_median() const {
  return summary_of(samples, [](const Sample& s) { return s.gap_median_s; });
}

Summary CellResult::gap_p99() const {
  return summary_of(samples, [](const Sample& s) { return s.gap_p99_s; });
}

Summary CellResult::kept() const {
  std::vector<double> values;
  for (const MixedRound& round : rounds) {
    values.insert(values.end(), round.kept.begin(), round.kept.end());
  }
  return summarise(std::move(values));
}

double CellResult::prompt_tokens() const {
  return summary_of(samples, [](const Sample& s) { return static_cast<double>(s.prompt_tokens); })
      .median;
}

double CellResult::cached_tokens() const {
  return summary_of(samples, [](const Sample& s) { return static_cast<double>(s.cached_tokens); })
      .median;
}

double CellResult::tokens_per_arrival() const {
  double tokens = 0;
  double arrivals = 0;
  for (const Sample& sample : samples) {
    tokens += static_cast<double>(sample.completion_tokens);
    arrivals += static_cast<double>(sample.arrivals);
  }
  return arrivals > 0 ? tokens / arrivals : 0;
}

CellResult run_load_cell(const LoadOptions& options, const Cell& cell, PromptScale& scale,
                         const std::function<void()>& done, const std::atomic<bool>& stop) {
  return LoadRun(options, cell, scale, done, stop).run();
}

}  // namespace tandem::bench
