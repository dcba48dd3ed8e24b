// Status and Result: how every layer reports what can go wrong outside the program.
// Messages are for the operator: they name the thing, what was found, what was expected, what to
// do.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "foundation/base/check.h"

namespace tandem {

// The closed set of reasons. serving/protocol maps each to an HTTP status in one table.
enum class StatusCode {
  kOk,
  kInvalidArgument,     // the caller's input is wrong
  kUnauthenticated,     // no key or a wrong one
  kPermissionDenied,    // a key without this right
  kNotFound,            // the named thing does not exist
  kAlreadyExists,       // the thing is there or running already
  kFailedPrecondition,  // right request, wrong state
  kResourceExhausted,   // a limit was reached; the message names it
  kDeadlineExceeded,    // it took too long
  kCancelled,           // somebody asked to stop
  kUnavailable,         // a peer, file system or device is not there now
  kDataLoss,            // bytes are damaged
  kUnimplemented,       // this build cannot do it
  kInternal,            // our fault
};

// "INVALID_ARGUMENT" and the like, for logs and JSON.
std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;

  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }

  StatusCode code() const { return code_; }

  const std::string& message() const { return message_; }

  // "INVALID_ARGUMENT: message".
  std::string to_string() const;

  // The same code with "context: " put before the message.
  Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status ok_status() {
  return {};
}

#define TANDEM_STATUS_MAKER(name, code)                                    \
  template <typename... Args>                                              \
  Status name(fmt::format_string<Args...> format, Args&&... args) {        \
    return Status(code, fmt::format(format, std::forward<Args>(args)...)); \
  }
TANDEM_STATUS_MAKER(invalid_argument, StatusCode::kInvalidArgument)
TANDEM_STATUS_MAKER(unauthenticated, StatusCode::kUnauthenticated)
TANDEM_STATUS_MAKER(permission_denied, StatusCode::kPermissionDenied)
TANDEM_STATUS_MAKER(not_found, StatusCode::kNotFound)
TANDEM_STATUS_MAKER(already_exists, StatusCode::kAlreadyExists)
TANDEM_STATUS_MAKER(failed_precondition, StatusCode::kFailedPrecondition)
TANDEM_STATUS_MAKER(resource_exhausted, StatusCode::kResourceExhausted)
TANDEM_STATUS_MAKER(deadline_exceeded, StatusCode::kDeadlineExceeded)
TANDEM_STATUS_MAKER(cancelled, StatusCode::kCancelled)
TANDEM_STATUS_MAKER(unavailable, StatusCode::kUnavailable)
TANDEM_STATUS_MAKER(data_loss, StatusCode::kDataLoss)
TANDEM_STATUS_MAKER(unimplemented, StatusCode::kUnimplemented)
TANDEM_STATUS_MAKER(internal_error, StatusCode::kInternal)
#undef TANDEM_STATUS_MAKER

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    TANDEM_CHECK(!status_.ok(), "a Result built from a Status needs an error");
  }

  bool ok() const { return value_.has_value(); }

  const Status& status() const { return status_; }

  T& value() & {
    TANDEM_CHECK(ok(), status_.to_string());
    return *value_;
  }

  const T& value() const& {
    TANDEM_CHECK(ok(), status_.to_string());
    return *value_;
  }

  T&& value() && {
    TANDEM_CHECK(ok(), status_.to_string());
    return std::move(*value_);
  }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(*this).value(); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

#define TANDEM_CONCAT_INNER(a, b) a##b
#define TANDEM_CONCAT(a, b) TANDEM_CONCAT_INNER(a, b)

// Returns the error of a Status expression to the caller.
#define TANDEM_TRY(expr)                         \
  do {                                           \
    ::tandem::Status tandem_try_status = (expr); \
    if (!tandem_try_status.ok()) {               \
      return tandem_try_status;                  \
    }                                            \
  } while (false)

// TANDEM_ASSIGN(auto x, f()): x = value of the Result, or returns its error to the caller.
#define TANDEM_ASSIGN(decl, expr) \
  TANDEM_ASSIGN_INNER(decl, expr, TANDEM_CONCAT(tandem_result_, __LINE__))
#define TANDEM_ASSIGN_INNER(decl, expr, tmp) \
  auto tmp = (expr);                         \
  if (!tmp.ok()) {                           \
    return tmp.status();                     \
  }                                          \
  decl = std::move(tmp).value()

}  // namespace tandem
