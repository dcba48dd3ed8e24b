// ResponsesReply: the Reply of POST /v1/responses. SOURCE: api.md 0.1, 0.2, 3.2.
#pragma once

#include <functional>
#include <string>

#include "foundation/base/clock.h"
#include "serving/protocol/chat_reply.h"
#include "serving/protocol/ids.h"
#include "serving/protocol/reply.h"
#include "serving/protocol/response_stream.h"
#include "serving/protocol/responses_request.h"
#include "serving/protocol/string_member_reader.h"

namespace tandem::protocol {

// Told the final response object before its terminal event leaves: a client that continues from
// the response as soon as it sees the event must find it stored. Returns whether it was kept; if
// not, the object says "store": false.
using ResponseSink = std::function<bool(const json::Object& response)>;

class ResponsesReply final : public Reply {
 public:
  // `ids` and `clock` must outlive the reply. `model` is the name that the client used;
  // `token_text` serves log-probabilities.
  ResponsesReply(ResponsesSettings settings, std::string model, IdSource& ids, const Clock& clock,
                 ResponseSink sink = {}, TokenText token_text = {});

  std::string begin(std::int64_t prompt_tokens) override;
  std::string update(const ChoiceUpdate& update) override;
  std::string end_choice(const ChoiceEnd& end) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  std::string heartbeat() override;
  json::Value body() const override;
  json::Value error_body(const ApiError& error) const override;

  const std::string& id() const { return id_; }

 private:
  enum class Channel { kNone, kReasoning, kMessage, kCall };

  void event(const text::StreamEvent& event, json::Array& logprobs);
  json::Array logprob_entries(const ChoiceUpdate& update) const;
  void enter(Channel channel);
  void leave(std::string_view status);
  void begin_call(const text::StreamEvent& event);
  void call_arguments(std::string_view text);
  void end_call(const text::StreamEvent& event);

  ResponsesSettings settings_;
  std::string id_;
  IdSource& ids_;
  const Clock& clock_;
  ResponseSink sink_;
  TokenText token_text_;
  ResponseStream stream_;
  Channel channel_ = Channel::kNone;
  bool custom_call_ = false;
  std::string custom_json_;  // what the model wrote as the custom tool's arguments
  StringMemberReader custom_reader_;
  bool cut_call_ = false;  // a call was begun and not completed
};

// The events of a stored response, as if it were streamed again with one delta per part. Only
// those with a sequence number above `starting_after`.
std::string replay_response(const json::Object& response, std::int64_t starting_after);

// {"input_tokens", ...}: what this API calls usage.
json::Object responses_usage(const runtime::Usage& usage);

}  // namespace tandem::protocol
