#include "apps/tandem/chat_session.h"

#include <chrono>
#include <utility>

#include "foundation/net/sse_parser.h"

namespace tandem::apps {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The message of an error body, or the body itself if it has another form.
std::string error_text(const std::string& body) {
  const auto parsed = json::parse(body);
  if (parsed.ok()) {
    if (const json::Value* error = json::find(*parsed, "error")) {
      if (const json::Value* message = json::find(*error, "message")) {
        if (message->is_string()) {
          return std::string(message->get_string());
        }
      }
    }
  }
  return body.substr(0, 500);
}

std::string text_member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::int64_t int_member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

// Reads the chunks of one stream into pieces, the answer's text and the summary.
class TurnReader {
 public:
  explicit TurnReader(const std::function<void(const ChatPiece&)>& sink) : sink_(sink) {}

  Status take(const net::SseEvent& event) {
    if (event.data == "[DONE]") {
      done = true;
      return ok_status();
    }
    TANDEM_ASSIGN(const json::Value chunk, json::parse(event.data));
    if (json::find(chunk, "error") != nullptr) {
      return unavailable("{}", error_text(event.data));
    }
    take_usage(chunk);
    const json::Value* choices = json::find(chunk, "choices");
    if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) {
      return ok_status();
    }
    const json::Value& choice = choices->get_array().front();
    if (const json::Value* delta = json::find(choice, "delta")) {
      take_delta(*delta);
    }
    const std::string reason = text_member(choice, "finish_reason");
    if (!reason.empty()) {
      summary.finish_reason = reason;
    }
    return ok_status();
  }

  TurnSummary summary;
  std::string answer;
  bool done = false;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

 private:
  void take_usage(const json::Value& chunk) {
    const json::Value* usage = json::find(chunk, "usage");
    if (usage == nullptr || !usage->is_object()) {
      return;
    }
    summary.prompt_tokens = int_member(*usage, "prompt_tokens");
    summary.completion_tokens = int_member(*usage, "completion_tokens");
    if (const json::Value* details = json::find(*usage, "prompt_tokens_details")) {
      summary.cached_tokens = int_member(*details, "cached_tokens");
    }
  }

  void take_delta(const json::Value& delta) {
    std::string thinking = text_member(delta, "reasoning_content");
    if (thinking.empty()) {
      thinking = text_member(delta, "reasoning");
    }
    const std::string content = text_member(delta, "content");
    if ((!thinking.empty() || !content.empty()) && summary.seconds_to_first == 0) {
      summary.seconds_to_first = seconds_since(start);
    }
    if (!thinking.empty()) {
      sink_({true, thinking});
    }
    if (!content.empty()) {
      answer += content;
      sink_({false, content});
    }
  }

  const std::function<void(const ChatPiece&)>& sink_;
};

}  // namespace

ChatSession::ChatSession(ChatOptions options) : options_(std::move(options)) {}

net::HttpRequest ChatSession::make_request(const std::string& target) const {
  net::HttpRequest request;
  request.target = target;
  if (!options_.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  }
  return request;
}

Status ChatSession::connect() {
  const auto response = net::http_fetch(options_.url, make_request("/v1/models"));
  if (!response.ok()) {
    return unavailable(
        "{}\nIs the server up? Start one with `tandem serve --model FOLDER`, or name another with "
        "--url.",
        response.status().message());
  }
  if (response->status != 200) {
    return failed_precondition("GET /v1/models answered {}: {}", response->status,
                               error_text(response->body));
  }
  if (!options_.model.empty()) {
    return ok_status();
  }
  TANDEM_ASSIGN(const json::Value body, json::parse(response->body));
  const json::Value* data = json::find(body, "data");
  if (data == nullptr || !data->is_array() || data->get_array().empty()) {
    return not_found("GET /v1/models lists no model");
  }
  options_.model = text_member(data->get_array().front(), "id");
  return ok_status();
}

std::string ChatSession::make_body() const {
  json::Array messages;
  if (!options_.system.empty()) {
    messages.push_back(json::Object{{"role", "system"}, {"content", options_.system}});
  }
  for (const json::Value& message : messages_) {
    messages.push_back(message);
  }
  json::Object body{{"model", options_.model},
                    {"messages", std::move(messages)},
                    {"stream", true},
                    {"stream_options", json::Object{{"include_usage", true}}}};
  if (!options_.thinking) {
    body["reasoning_effort"] = "none";
  }
  if (options_.max_tokens > 0) {
    body["max_tokens"] = options_.max_tokens;
  }
  return json::dump(body);
}

Result<TurnSummary> ChatSession::ask(const std::string& text,
                                     const std::function<void(const ChatPiece&)>& sink,
                                     const std::atomic<bool>& stop) {
  messages_.push_back(json::Object{{"role", "user"}, {"content", text}});
  net::HttpRequest request = make_request("/v1/chat/completions");
  request.method = "POST";
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = make_body();

  TurnReader reader(sink);
  net::SseParser parser;
  std::string plain;  // an error answer is no event stream
  Status failure;
  const auto response = net::http_fetch(options_.url, request, [&](std::string_view piece) {
    plain.append(piece.substr(0, plain.size() < 4096 ? piece.size() : 0));
    for (const net::SseEvent& event : parser.feed(piece)) {
      failure = reader.take(event);
      if (!failure.ok()) {
        return false;
      }
    }
    return !stop.load();
  });
  reader.summary.seconds = seconds_since(reader.start);
  if (response.ok() && response->status != 200) {
    failure =
        failed_precondition("the server answered {}: {}", response->status, error_text(plain));
  } else if (failure.ok() && !response.ok() && !stop.load()) {
    failure = response.status();
  } else if (failure.ok() && !stop.load() && !reader.done) {
    failure = data_loss("the stream ended without [DONE]; the answer may be incomplete");
  }
  if (!failure.ok()) {
    messages_.pop_back();
    return failure;
  }
  if (stop.load()) {
    reader.summary.finish_reason = "stopped";
  }
  messages_.push_back(json::Object{{"role", "assistant"}, {"content", reader.answer}});
  return reader.summary;
}

void ChatSession::clear() {
  messages_.clear();
}

}  // namespace tandem::apps
