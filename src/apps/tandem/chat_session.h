// ChatSession: the conversation that `tandem chat` holds, and one streamed turn of it.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "foundation/json/json.h"
#include "foundation/net/http_client.h"

namespace tandem::apps {

struct ChatOptions {
  net::Url url;
  std::string api_key;
  std::string model;  // "": the server's first model
  std::string system;
  bool thinking = true;
  std::int64_t max_tokens = 0;  // 0: the server's default
};

// A piece of the answer as it arrives.
struct ChatPiece {
  bool is_thinking = false;
  std::string text;
};

struct TurnSummary {
  std::string finish_reason;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  double seconds_to_first = 0;
  double seconds = 0;
};

class ChatSession {
 public:
  explicit ChatSession(ChatOptions options);

  // Asks the server for its first model if none was named.
  // ERRORS: kUnavailable with what to start; kNotFound if the server has no model.
  Status connect();

  // Sends one user message and streams the answer to `sink`. When `stop` becomes true the stream
  // is closed and what had arrived is kept as the answer.
  Result<TurnSummary> ask(const std::string& text,
                          const std::function<void(const ChatPiece&)>& sink,
                          const std::atomic<bool>& stop);

  // Forgets the conversation, keeps the options.
  void clear();

  ChatOptions& options() { return options_; }

  const json::Array& messages() const { return messages_; }

 private:
  net::HttpRequest make_request(const std::string& target) const;
  std::string make_body() const;

  ChatOptions options_;
  json::Array messages_;
};

}  // namespace tandem::apps
