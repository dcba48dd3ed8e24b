#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "operations/bench/load.h"

namespace tandem::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kLongStream = 2'000'000;
constexpr std::uint64_t kWarmUpStream = 1'000'000;
constexpr std::size_t kFewestGaps = 5;  // in a window, for its rate to mean something
constexpr auto kPoll = std::chrono::milliseconds(10);

struct Window {
  double from = 0;  // seconds since the cell began
  double to = 0;
};

class MixedRun {
 public:
  MixedRun(const LoadOptions& options, const Cell& cell, PromptScale& scale,
           const std::function<void()>& done, const std::atomic<bool>& stop)
      : options_(options),
        scale_(scale),
        done_(done),
        stop_(stop),
        start_(SteadyClock::now()),
        arrivals_(static_cast<std::size_t>(cell.concurrency)) {
    result_.cell = cell;
  }

  CellResult run() {
    words_ = scale_.words_for(result_.cell.context_tokens);
    if (!warm_up()) {
      return finish();
    }
    std::vector<std::jthread> streams;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      streams.emplace_back([this, i] { run_stream(i); });
    }
    if (wait_until_all_run()) {
      for (int i = 0; i < options_.requests_per_stream && !halt_.load() && !stop_.load(); ++i) {
        run_round(i);
        done_();
      }
    }
    halt_ = true;
    streams.clear();
    return finish();
  }

 private:
  double now() const { return std::chrono::duration<double>(SteadyClock::now() - start_).count(); }

  CellResult finish() {
    result_.wall_s = now();
    if (gone_) {
      result_.end = CellEnd::kServerGone;
    } else if (stop_.load()) {
      result_.end = CellEnd::kStopped;
    }
    return std::move(result_);
  }

  // One whole request tells the tokens per arrival and the real length of a prompt.
  bool warm_up() {
    const auto sample =
        stream_request(options_.target, options_.shape,
                       cell_prompt(options_, result_.cell, words_, kWarmUpStream, 0), stop_);
    if (!sample.ok()) {
      fail(sample.status());
      return false;
    }
    scale_.correct(words_, sample->prompt_tokens);
    words_ = scale_.words_for(result_.cell.context_tokens);
    result_.samples.push_back(*sample);
    return true;
  }

  void fail(const Status& status) {
    if (status.code() == StatusCode::kCancelled) {
      return;
    }
    const bool gone =
        status.code() == StatusCode::kUnavailable && server_is_gone(options_.target, stop_);
    const std::lock_guard<std::mutex> lock(mutex_);
    gone_ = gone_ || gone;
    result_.errors.push_back(status.to_string());
    halt_ = true;
  }

  // A stream that answers without pause until the cell is over.
  void run_stream(std::size_t stream) {
    RequestShape shape = options_.shape;
    shape.max_tokens = options_.mixed_stream_tokens;
    for (std::uint64_t i = 0; !halt_.load(); ++i) {
      const double sent = now();
      const auto sample = stream_request(options_.target, shape,
                                         cell_prompt(options_, result_.cell, words_, stream, i),
                                         halt_, [&](double seconds) {
                                           const std::lock_guard<std::mutex> lock(mutex_);
                                           arrivals_[stream].push_back(sent + seconds);
                                         });
      if (!sample.ok()) {
        fail(sample.status());
        return;
      }
    }
  }

  bool wait_until_all_run() {
    while (!halt_.load() && !stop_.load()) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (std::all_of(arrivals_.begin(), arrivals_.end(),
                        [](const auto& times) { return times.size() > 1; })) {
          return true;
        }
      }
      std::this_thread::sleep_for(kPoll);
    }
    return false;
  }

  void run_round(int number) {
    const double quiet_from = now();
    while (now() < quiet_from + options_.quiet_s && !halt_.load() && !stop_.load()) {
      std::this_thread::sleep_for(kPoll);
    }
    RequestShape shape = options_.shape;
    shape.max_tokens = 2;
    Cell prompt_cell = result_.cell;
    prompt_cell.context_tokens = result_.cell.mixed_prompt_tokens;
    const std::string prompt =
        cell_prompt(options_, prompt_cell, scale_.words_for(prompt_cell.context_tokens),
                    kLongStream, static_cast<std::uint64_t>(number));
    const double sent = now();
    const auto sample = stream_request(options_.target, shape, prompt, stop_);
    if (!sample.ok()) {
      fail(sample.status());
      return;
    }
    judge({quiet_from, sent}, {sent, sent + sample->ttft_s}, *sample);
  }

  static double rate(const std::vector<double>& times, const Window& window) {
    const auto from = std::lower_bound(times.begin(), times.end(), window.from);
    const auto to = std::lower_bound(times.begin(), times.end(), window.to);
    return window.to > window.from ? static_cast<double>(to - from) / (window.to - window.from) : 0;
  }

  static double longest_gap(const std::vector<double>& times, const Window& window) {
    double last = window.from;
    double longest = 0;
    for (const double time : times) {
      if (time > window.from && time <= window.to) {
        longest = std::max(longest, time - last);
        last = time;
      }
    }
    return std::max(longest, window.to - last);
  }

  void judge(const Window& quiet, const Window& busy, const Sample& sample) {
    const std::lock_guard<std::mutex> lock(mutex_);
    MixedRound round;
    round.long_prompt_tokens = sample.prompt_tokens;
    round.long_ttft_s = sample.ttft_s;
    double quiet_sum = 0;
    for (const std::vector<double>& times : arrivals_) {
      const double before = rate(times, quiet);
      if (before * (busy.to - busy.from) < kFewestGaps) {
        result_.errors.push_back(fmt::format(
            "the long prompt was read in {:.3f} s, less than {} gaps of a stream of {:.1f} "
            "arrivals/s; take a longer --mixed",
            busy.to - busy.from, kFewestGaps, before));
        return;
      }
      quiet_sum += before;
      round.kept.push_back(rate(times, busy) / before);
      round.worst_gap_s = std::max(round.worst_gap_s, longest_gap(times, busy));
    }
    result_.quiet_rate =
        quiet_sum / static_cast<double>(arrivals_.size()) * result_.tokens_per_arrival();
    result_.rounds.push_back(std::move(round));
  }

  const LoadOptions& options_;
  PromptScale& scale_;
  const std::function<void()>& done_;
  const std::atomic<bool>& stop_;
  SteadyClock::time_point start_;
  std::atomic<bool> halt_{false};  // ends the running streams
  bool gone_ = false;
  std::int64_t words_ = 0;
  std::mutex mutex_;
  std::vector<std::vector<double>> arrivals_;  // per stream, seconds since start_
  CellResult result_;
};

}  // namespace

CellResult run_mixed_cell(const LoadOptions& options, const Cell& cell, PromptScale& scale,
                          const std::function<void()>& done, const std::atomic<bool>& stop) {
  return MixedRun(options, cell, scale, done, stop).run();
}

}  // namespace tandem::bench
