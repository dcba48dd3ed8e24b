// ResponseStream: the state machine of a Responses stream. It numbers events, keeps ids and indices
// in order and builds the response object beside them, so that the streamed and the final form
// cannot differ. SOURCE: api.md 3.2; OpenResponses 2026-04-24, "Items are state machines".
//
//   begin -> (open_* -> deltas -> close)* -> end -> terminal
//
// Every call appends its frames to the buffer that take() empties.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/responses_tools.h"

namespace tandem::protocol {

// How the response ended.
struct ResponseEnd {
  std::string status = "completed";  // completed, incomplete, failed, cancelled
  std::string incomplete_reason;     // with incomplete: "max_output_tokens"
  json::Value usage;
  std::int64_t completed_at = 0;
};

class ResponseStream {
 public:
  // `response` has every member of the object but those that the end decides.
  explicit ResponseStream(json::Object response);

  void begin();
  void in_progress();

  void open_reasoning(std::string id);
  void open_message(std::string id);
  void open_call(std::string id, std::string call_id, const ToolOrigin& origin);

  // The next part of the open item: its text, a function's arguments or a custom tool's input.
  // `logprobs` belong to a message's text; those without text yet go with the next part.
  void delta(std::string_view text, json::Array logprobs = {});

  // Ends the open item, if there is one. `encrypted` is a reasoning item's opaque form.
  void close(std::string_view status, std::optional<std::string> encrypted = std::nullopt);

  void end(const ResponseEnd& end);
  void terminal();

  // The response object says "store": false from now on.
  void not_stored() { response_["store"] = false; }

  // An error after the stream began: an error event, then response.failed.
  void fail(const ApiError& error, std::int64_t completed_at);

  bool is_open() const { return kind_ != Kind::kNone; }

  // The text of the open item until now.
  const std::string& text() const { return text_; }

  std::string take() { return std::move(frames_); }

  const json::Object& response() const { return response_; }

 private:
  enum class Kind { kNone, kReasoning, kMessage, kFunction, kCustom };

  void emit(std::string_view type, json::Object fields);
  void emit_response(std::string_view type);
  json::Object place(bool with_content) const;
  json::Object part(std::string_view text, json::Array logprobs) const;
  void open(Kind kind, json::Object item);
  void close_text(json::Object& item);
  void close_call(json::Object& item);

  json::Object response_;
  std::int64_t sequence_ = 0;
  std::string frames_;
  Kind kind_ = Kind::kNone;
  json::Object item_;  // the open item as it was announced
  std::string text_;
  json::Array logprobs_;  // of a message's text
  std::size_t sent_logprobs_ = 0;
};

}  // namespace tandem::protocol
