// A small blocking HTTP/1.1 client with deadlines, for the terminal chat, the verifier, the
// benchmarks and the cluster tool. It shares no code with serving/http: a checker that shares the
// server's parser would share its faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::net {

// scheme://host:port with an optional path prefix that is put before every target.
struct Url {
  std::string scheme = "http";
  std::string host;
  std::string port;
  std::string prefix;  // "" or "/v1"; no slash at the end
};

// ERRORS: kInvalidArgument if it is not an http:// or https:// address.
Result<Url> parse_url(std::string_view text);

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::int64_t connect_timeout_ms = 5'000;
  std::int64_t idle_timeout_ms = 120'000;     // longest wait for the next byte
  std::string ca_file;                        // https: trust this PEM file beside the system's
  const std::atomic<bool>* cancel = nullptr;  // becomes true: give up within 0.1 s
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  // The value of the first header with this name (any case), or "".
  std::string header(std::string_view name) const;
};

// Called with each piece of the body as it arrives. Returning false closes the connection.
using BodySink = std::function<bool(std::string_view piece)>;

// Sends one request and reads the whole response. With a sink the body goes there instead of
// HttpResponse::body.
// ERRORS: kUnavailable (resolve, connect, or the connection broke: the message says how many body
// bytes had arrived); kDeadlineExceeded (a timeout, named); kDataLoss (not HTTP);
// kCancelled (the sink returned false, or HttpRequest::cancel became true).
Result<HttpResponse> http_fetch(const Url& url, const HttpRequest& request,
                                const BodySink& sink = nullptr);

}  // namespace tandem::net
