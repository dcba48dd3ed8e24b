#include "operations/bench/sample.h"

#include <algorithm>
#include <chrono>

#include "foundation/net/sse_parser.h"
#include "operations/bench/statistics.h"

namespace tandem::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

net::HttpRequest make_request(const Target& target, const std::string& path, std::string body,
                              const std::atomic<bool>& stop) {
  net::HttpRequest request;
  request.method = body.empty() ? "GET" : "POST";
  request.target = path;
  request.idle_timeout_ms = target.timeout_ms;
  request.cancel = &stop;
  if (!body.empty()) {
    request.headers.emplace_back("Content-Type", "application/json");
  }
  if (!target.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + target.api_key);
  }
  request.body = std::move(body);
  return request;
}

std::string chat_body(const Target& target, const RequestShape& shape, const std::string& prompt) {
  json::Object body{{"model", target.model},
                    {"messages", json::Array{json::Object{{"role", "user"}, {"content", prompt}}}},
                    {"temperature", shape.temperature},
                    {"max_tokens", shape.max_tokens},
                    {"stream", true},
                    {"stream_options", json::Object{{"include_usage", true}}},
                    {"chat_template_kwargs", json::Object{{"thinking", false}}}};
  if (!shape.natural) {
    body["ignore_eos"] = true;
  }
  return json::dump(body);
}

// Reads the chunks of one stream.
class StreamReader {
 public:
  explicit StreamReader(SteadyClock::time_point start) : start_(start) {}

  // Returns true if the piece completed a chunk with text.
  bool take(std::string_view piece) {
    bool has_text = false;
    for (const net::SseEvent& event : parser_.feed(piece)) {
      has_text = take_chunk(event.data) || has_text;
    }
    if (has_text) {
      arrivals_.push_back(seconds_since(start_));
    }
    return has_text;
  }

  double last_arrival() const { return arrivals_.back(); }

  Sample finish() {
    sample_.total_s = seconds_since(start_);
    sample_.arrivals = static_cast<std::int64_t>(arrivals_.size());
    if (arrivals_.empty()) {
      return sample_;
    }
    sample_.ttft_s = arrivals_.front();
    std::vector<double> gaps;
    for (std::size_t i = 1; i < arrivals_.size(); ++i) {
      gaps.push_back(arrivals_[i] - arrivals_[i - 1]);
    }
    sample_.gap_median_s = summarise(gaps).median;
    sample_.gap_p99_s = quantile(gaps, 0.99);
    sample_.gap_max_s = quantile(std::move(gaps), 1);
    return sample_;
  }

 private:
  bool take_chunk(const std::string& data) {
    const auto parsed = json::parse(data);
    if (!parsed.ok()) {
      return false;  // "[DONE]"
    }
    const json::Value* usage = json::find(*parsed, "usage");
    if (usage != nullptr && usage->is_object()) {
      sample_.prompt_tokens = int_member(*usage, "prompt_tokens");
      sample_.completion_tokens = int_member(*usage, "completion_tokens");
      if (const json::Value* details = json::find(*usage, "prompt_tokens_details")) {
        sample_.cached_tokens = int_member(*details, "cached_tokens");
      }
    }
    const json::Value* choices = json::find(*parsed, "choices");
    if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) {
      return false;
    }
    const json::Value* delta = json::find(choices->get_array().front(), "delta");
    for (const char* key : {"content", "reasoning_content", "reasoning"}) {
      const json::Value* text = delta == nullptr ? nullptr : json::find(*delta, key);
      if (text != nullptr && text->is_string() && !text->get_string().empty()) {
        return true;
      }
    }
    return false;
  }

  SteadyClock::time_point start_;
  net::SseParser parser_;
  std::vector<double> arrivals_;
  Sample sample_;
};

}  // namespace

double Sample::decode_rate() const {
  const double seconds = total_s - ttft_s;
  return arrivals > 1 && seconds > 0 ? static_cast<double>(completion_tokens - 1) / seconds : 0;
}

std::int64_t int_member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

Result<Sample> stream_request(const Target& target, const RequestShape& shape,
                              const std::string& prompt, const std::atomic<bool>& stop,
                              const std::function<void(double)>& arrived) {
  constexpr std::size_t kKeptOfAnError = 400;
  std::string head;
  net::HttpRequest request =
      make_request(target, "/v1/chat/completions", chat_body(target, shape, prompt), stop);
  StreamReader reader(SteadyClock::now());
  const auto response = net::http_fetch(target.url, request, [&](std::string_view piece) {
    if (head.size() < kKeptOfAnError) {
      head += piece.substr(0, kKeptOfAnError - head.size());
    }
    if (reader.take(piece) && arrived != nullptr) {
      arrived(reader.last_arrival());
    }
    return !stop.load();
  });
  TANDEM_TRY(response.status());
  const Sample sample = reader.finish();
  if (response->status != 200) {
    return failed_precondition("status {}: {}", response->status, head);
  }
  if (sample.arrivals == 0) {
    return data_loss("status 200, but the stream has no text; it starts: {}", head);
  }
  if (sample.completion_tokens == 0) {
    return data_loss("status 200, but the stream has no usage with completion_tokens");
  }
  return sample;
}

Result<net::HttpResponse> fetch_text(const Target& target, const std::string& path,
                                     const std::string& body, const std::atomic<bool>& stop) {
  return net::http_fetch(target.url, make_request(target, path, body, stop));
}

Result<std::string> first_model(const Target& target, const std::atomic<bool>& stop) {
  TANDEM_ASSIGN(const net::HttpResponse response, fetch_text(target, "/v1/models", "", stop));
  if (response.status != 200) {
    return failed_precondition(
        "GET /v1/models: status {}: {}; expected 200. Is this the address "
        "of an OpenAI-compatible server?",
        response.status, response.body.substr(0, 200));
  }
  const auto body = json::parse(response.body);
  const json::Value* data = body.ok() ? json::find(*body, "data") : nullptr;
  if (data == nullptr || !data->is_array() || data->get_array().empty() ||
      !data->get_array().front().is_object()) {
    return failed_precondition("GET /v1/models lists no model; name one with --model. Got: {}",
                               response.body.substr(0, 200));
  }
  return json::get_string(data->get_array().front().as_object(), "id", "data[0].");
}

}  // namespace tandem::bench
