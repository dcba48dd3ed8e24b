#include "serving/protocol/api_error.h"

namespace tandem::protocol {
namespace {

struct Row {
  int http_status;
  const char* type;
  const char* code;
  std::optional<int> retry_after_s;
};

// SOURCE: api.md 3.9.
Row row_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnimplemented:
      return {400, "invalid_request_error", "", std::nullopt};
    case StatusCode::kUnauthenticated:
      return {401, "invalid_request_error", "invalid_api_key", std::nullopt};
    case StatusCode::kPermissionDenied:
      return {403, "permission_error", "permission_denied", std::nullopt};
    case StatusCode::kNotFound:
      return {404, "invalid_request_error", "not_found", std::nullopt};
    case StatusCode::kAlreadyExists:
      return {409, "invalid_request_error", "conflict", std::nullopt};
    case StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "rate_limit_exceeded", 1};
    case StatusCode::kDeadlineExceeded:
      return {504, "server_error", "timeout", std::nullopt};
    case StatusCode::kCancelled:
      return {499, "server_error", "cancelled", std::nullopt};
    case StatusCode::kUnavailable:
      return {503, "server_error", "unavailable", 5};
    case StatusCode::kOk:
    case StatusCode::kDataLoss:
    case StatusCode::kInternal:
      break;
  }
  return {500, "server_error", "internal_error", std::nullopt};
}

}  // namespace

ApiError to_api_error(const Status& status, std::string param) {
  const Row row = row_of(status.code());
  ApiError error;
  error.http_status = row.http_status;
  error.type = row.type;
  error.code = row.code;
  error.message = status.message();
  error.param = std::move(param);
  error.retry_after_s = row.retry_after_s;
  return error;
}

ApiError bad_field(std::string param, std::string message) {
  ApiError error;
  error.message = std::move(message);
  error.param = std::move(param);
  return error;
}

json::Object openai_error_body(const ApiError& error) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? json::Value() : json::Value(text);
  };
  return {{"error", json::Object{{"message", error.message},
                                 {"type", error.type},
                                 {"param", text_or_null(error.param)},
                                 {"code", text_or_null(error.code)}}}};
}

}  // namespace tandem::protocol
