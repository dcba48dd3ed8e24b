// ApiClient: sends JSON to a server under test and keeps what came back, byte for byte.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "foundation/net/http_client.h"
#include "foundation/net/sse_parser.h"

namespace tandem::verify {

struct ApiReply {
  int status = 0;
  std::string content_type;
  std::string body;  // raw
  json::Value json;  // null if the body is no JSON
  bool is_json = false;

  // "200 {...}", shortened for reports.
  std::string brief() const;
};

struct StreamReply {
  int status = 0;
  std::string content_type;
  std::string raw;                    // the whole body
  std::vector<net::SseEvent> events;  // as parsed from it
  bool ended_inside_event = false;
  Status transport;  // how the connection ended

  std::string brief() const;
};

class ApiClient {
 public:
  ApiClient(net::Url url, std::string api_key, std::int64_t timeout_ms)
      : url_(std::move(url)), api_key_(std::move(api_key)), timeout_ms_(timeout_ms) {}

  // ERRORS: those of net::http_fetch; a status code is no error.
  Result<ApiReply> get(const std::string& target);
  Result<ApiReply> post(const std::string& target, const json::Object& body);
  Result<ApiReply> send(const std::string& method, const std::string& target,
                        const std::string& body);

  // Sends and reads a stream to its end, or until on_event returns false (then the connection is
  // closed in the middle, as a client that goes away does).
  StreamReply stream(const std::string& target, const json::Object& body,
                     const std::function<bool(const net::SseEvent&)>& on_event = nullptr);

  const std::string& model() const { return model_; }
  void set_model(std::string model) { model_ = std::move(model); }

  // Requests are given up (kCancelled) when the flag becomes true.
  void set_cancel(const std::atomic<bool>* cancel) { cancel_ = cancel; }

  // The last request in one line, for evidence.
  const std::string& last_request() const { return last_request_; }

 private:
  net::HttpRequest make_request(const std::string& method, const std::string& target,
                                std::string body);

  net::Url url_;
  std::string api_key_;
  std::int64_t timeout_ms_;
  std::string model_;
  std::string last_request_;
  const std::atomic<bool>* cancel_ = nullptr;
};

// At most `limit` bytes of a text, cut at a UTF-8 border, with the number of bytes left out.
std::string shorten(std::string_view text, std::size_t limit = 600);

}  // namespace tandem::verify
