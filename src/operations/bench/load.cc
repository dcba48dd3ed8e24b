#include "operations/bench/load.h"

#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "foundation/base/random.h"
#include "foundation/json/json.h"
#include "foundation/net/sse_parser.h"

namespace tandem::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

std::int64_t int_member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

net::HttpRequest chat_request(const LoadOptions& options, const std::string& prompt) {
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.idle_timeout_ms = options.timeout_ms;
  request.headers.emplace_back("Content-Type", "application/json");
  if (!options.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + options.api_key);
  }
  request.body = json::dump(
      json::Object{{"model", options.model},
                   {"messages", json::Array{json::Object{{"role", "user"}, {"content", prompt}}}},
                   {"temperature", 0},
                   {"max_tokens", options.max_tokens},
                   {"ignore_eos", true},
                   {"stream", true},
                   {"stream_options", json::Object{{"include_usage", true}}},
                   {"chat_template_kwargs", json::Object{{"thinking", false}}}});
  return request;
}

// Takes first-text time and usage from one chunk of the stream.
void take_chunk(const net::SseEvent& event, SteadyClock::time_point start, Sample& sample) {
  const auto parsed = json::parse(event.data);
  if (!parsed.ok()) {
    return;
  }
  const json::Value* choices = json::find(*parsed, "choices");
  if (sample.ttft_s == 0 && choices != nullptr && choices->is_array() &&
      !choices->get_array().empty()) {
    const json::Value* delta = json::find(choices->get_array().front(), "delta");
    for (const char* key : {"content", "reasoning_content", "reasoning"}) {
      const json::Value* text = delta == nullptr ? nullptr : json::find(*delta, key);
      if (text != nullptr && text->is_string() && !text->get_string().empty()) {
        sample.ttft_s = seconds_since(start);
      }
    }
  }
  const json::Value* usage = json::find(*parsed, "usage");
  if (usage != nullptr && usage->is_object()) {
    sample.prompt_tokens = int_member(*usage, "prompt_tokens");
    sample.completion_tokens = int_member(*usage, "completion_tokens");
    if (const json::Value* details = json::find(*usage, "prompt_tokens_details")) {
      sample.cached_tokens = int_member(*details, "cached_tokens");
    }
  }
}

Result<Sample> run_request(const LoadOptions& options, const std::string& prompt,
                           const std::atomic<bool>& stop) {
  Sample sample;
  net::SseParser parser;
  std::string head;
  const auto start = SteadyClock::now();
  const auto response =
      net::http_fetch(options.url, chat_request(options, prompt), [&](std::string_view piece) {
        head.append(piece.substr(0, head.size() < 400 ? 400 : 0));
        for (const net::SseEvent& event : parser.feed(piece)) {
          take_chunk(event, start, sample);
        }
        return !stop.load();
      });
  if (!response.ok()) {
    return response.status();
  }
  sample.total_s = seconds_since(start);
  if (response->status != 200) {
    return failed_precondition("status {}: {}", response->status, head);
  }
  if (sample.completion_tokens == 0 || sample.ttft_s == 0) {
    return data_loss("a stream without text or without usage");
  }
  return sample;
}

// Sum of a metric over its labels, 0 if the server has none.
double metric(const LoadOptions& options, const std::string& name) {
  net::HttpRequest request;
  request.target = "/metrics";
  const auto response = net::http_fetch(options.url, request);
  double sum = 0;
  if (!response.ok()) {
    return sum;
  }
  const std::string& text = response->body;
  for (std::size_t at = text.find("\n" + name); at != std::string::npos;
       at = text.find("\n" + name, at + 1)) {
    const std::size_t end = text.find('\n', at + 1);
    const std::size_t space = text.rfind(' ', end);
    double value = 0;
    const char after = text[at + 1 + name.size()];
    if ((after == ' ' || after == '{') && space != std::string::npos && space > at) {
      std::from_chars(text.data() + space + 1, text.data() + std::min(end, text.size()), value);
      sum += value;
    }
  }
  return sum;
}

class CellRun {
 public:
  CellRun(const LoadOptions& options, const Cell& cell, const std::function<void()>& done,
          const std::atomic<bool>& stop)
      : options_(options), done_(done), stop_(stop) {
    result_.cell = cell;
  }

  CellResult run() {
    for (int i = 0; i < options_.warm_up_requests && !stop_.load(); ++i) {
      record(run_request(options_, prompt(1'000'000, i), stop_), false);
    }
    const double drafted = metric(options_, "vllm:spec_decode_num_draft_tokens_total");
    const double accepted = metric(options_, "vllm:spec_decode_num_accepted_tokens_total");
    const auto start = SteadyClock::now();
    std::vector<std::jthread> streams;
    for (int stream = 0; stream < result_.cell.concurrency; ++stream) {
      streams.emplace_back([this, stream] { run_stream(stream); });
    }
    streams.clear();
    result_.wall_s = seconds_since(start);
    result_.drafted = metric(options_, "vllm:spec_decode_num_draft_tokens_total") - drafted;
    result_.accepted = metric(options_, "vllm:spec_decode_num_accepted_tokens_total") - accepted;
    result_.interrupted = stop_.load();
    return std::move(result_);
  }

 private:
  std::string prompt(int stream, int request) const {
    const Cell& cell = result_.cell;
    const std::uint64_t key = cell.repeat_prompt ? 0
                                                 : static_cast<std::uint64_t>(stream) * 1000 +
                                                       static_cast<std::uint64_t>(request) + 1;
    const std::uint64_t shape = static_cast<std::uint64_t>(cell.concurrency) << 40 ^
                                static_cast<std::uint64_t>(cell.context_words) << 8 ^
                                static_cast<std::uint64_t>(cell.content);
    return make_prompt(cell.content, mix64(options_.seed ^ mix64(shape) ^ mix64(key)),
                       cell.context_words);
  }

  void run_stream(int stream) {
    for (int i = 0; i < options_.requests_per_stream && !stop_.load(); ++i) {
      record(run_request(options_, prompt(stream, i), stop_), true);
    }
  }

  void record(const Result<Sample>& sample, bool counted) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!sample.ok()) {
      if (sample.status().code() != StatusCode::kCancelled) {
        result_.errors.push_back(sample.status().to_string());
      }
      return;
    }
    if (counted) {
      result_.samples.push_back(*sample);
      done_();
    }
  }

  const LoadOptions& options_;
  const std::function<void()>& done_;
  const std::atomic<bool>& stop_;
  std::mutex mutex_;
  CellResult result_;
};

}  // namespace

double Sample::decode_rate() const {
  const double seconds = total_s - ttft_s;
  return seconds > 0 ? static_cast<double>(completion_tokens - 1) / seconds : 0;
}

double CellResult::aggregate_rate() const {
  double tokens = 0;
  for (const Sample& sample : samples) {
    tokens += static_cast<double>(sample.completion_tokens);
  }
  return wall_s > 0 ? tokens / wall_s : 0;
}

Summary CellResult::ttft() const {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    values.push_back(sample.ttft_s);
  }
  return summarise(std::move(values));
}

Summary CellResult::decode() const {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    values.push_back(sample.decode_rate());
  }
  return summarise(std::move(values));
}

double CellResult::prompt_tokens() const {
  double sum = 0;
  for (const Sample& sample : samples) {
    sum += static_cast<double>(sample.prompt_tokens);
  }
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

CellResult run_cell(const LoadOptions& options, const Cell& cell, const std::function<void()>& done,
                    const std::atomic<bool>& stop) {
  return CellRun(options, cell, done, stop).run();
}

}  // namespace tandem::bench
