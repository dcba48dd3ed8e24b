// ApiError: what every wire format says when a request cannot be served.
#pragma once

#include <optional>
#include <string>

#include "foundation/base/status.h"

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

}  // namespace tandem::protocol
