// Request and response as the server's handlers see them: plain data, no sockets.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  // "POST"
  std::string path;    // without the query
  std::string query;   // without the question mark
  Headers headers;     // in the order of the wire
  std::string body;
  std::string peer;              // address of the client, for the log
  bool wants_websocket = false;  // a valid request to go on as one

  // The value of the first header with this name (any case), or "".
  std::string_view header(std::string_view name) const;

  // The value of a query parameter, percent-decoded, or "".
  std::string query_value(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers;
  std::string body;
};

// "Not Found" for 404; "" for codes that this server does not send.
std::string_view reason_phrase(int status);

// The head of a response, up to and including the empty line. `content_length` < 0: chunked.
std::string response_head(int status, const std::string& content_type, const Headers& headers,
                          long long content_length, bool keep_alive);

// One chunk of a chunked body. REQUIRES: data is not empty.
std::string chunk(std::string_view data);

// What ends a chunked body.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace tandem::http
