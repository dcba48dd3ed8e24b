// ApiError: what every wire format says when a request cannot be served.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "foundation/base/check.h"
#include "foundation/base/status.h"
#include "foundation/json/json.h"

namespace tandem::protocol {

struct ApiError {
  int http_status = 400;
  std::string type = "invalid_request_error";  // OpenAI's type; Messages has its own table
  std::string code;                            // "context_length_exceeded"; empty: null
  std::string message;
  std::string param;                 // the request field, "messages[2].content"; empty: null
  std::optional<int> retry_after_s;  // 429 and 503
};

// The one table from StatusCode to HTTP.
ApiError to_api_error(const Status& status, std::string param = {});

// A 400 about one field of the request.
ApiError bad_field(std::string param, std::string message);

// {"error": {"message", "type", "param", "code"}}: the shape of both OpenAI APIs.
json::Object openai_error_body(const ApiError& error);

// A value, or what to tell the client.
template <typename T>
class Parsed {
 public:
  Parsed(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Parsed(ApiError error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }

  const ApiError& error() const { return error_; }

  T& operator*() & {
    TANDEM_CHECK(ok(), error_.message);
    return *value_;
  }

  const T& operator*() const& {
    TANDEM_CHECK(ok(), error_.message);
    return *value_;
  }

  T&& operator*() && { return std::move(**this); }

  T* operator->() { return &**this; }

  const T* operator->() const { return &**this; }

 private:
  std::optional<T> value_;
  ApiError error_;
};

}  // namespace tandem::protocol
