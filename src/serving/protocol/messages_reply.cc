#include "serving/protocol/messages_reply.h"

#include <utility>

#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {
namespace {

// SOURCE: api.md 3.9.
std::string_view error_type(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
    case 529:
      return "overloaded_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "api_error";
  }
}

json::Object usage_object(std::int64_t prompt, std::int64_t cached, std::int64_t output) {
  return {{"input_tokens", prompt - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", output}};
}

}  // namespace

// Clients know by the words "prompt is too long" that they must compact the conversation.
json::Object messages_error_body(const ApiError& error, const std::string& request_id) {
  const bool too_long = error.code == "context_length_exceeded";
  return {{"type", "error"},
          {"error",
           json::Object{{"type", error_type(error.http_status)},
                        {"message", (too_long ? "prompt is too long: " : "") + error.message}}},
          {"request_id", request_id}};
}

MessagesReply::MessagesReply(std::string model, std::string request_id, IdSource& ids)
    : request_id_(std::move(request_id)), ids_(ids), message_{{"id", ids.make("msg_")},
                                                              {"type", "message"},
                                                              {"role", "assistant"},
                                                              {"model", std::move(model)},
                                                              {"content", json::Array()},
                                                              {"stop_reason", nullptr},
                                                              {"stop_sequence", nullptr},
                                                              {"usage", usage_object(0, 0, 0)}} {}

std::string MessagesReply::begin(std::int64_t prompt_tokens) {
  message_["usage"] = usage_object(prompt_tokens, 0, 1);
  frames_ +=
      sse_frame("message_start", json::Object{{"type", "message_start"}, {"message", message_}});
  frames_ += heartbeat();
  return take();
}

std::string MessagesReply::update(const ChoiceUpdate& update) {
  for (const text::StreamEvent& one : update.events) {
    event(one);
  }
  return take();
}

void MessagesReply::event(const text::StreamEvent& event) {
  using Kind = text::StreamEvent::Kind;
  switch (event.kind) {
    case Kind::kReasoning:
      enter(Block::kThinking);
      text_ += event.text;
      delta({{"type", "thinking_delta"}, {"thinking", event.text}});
      break;
    case Kind::kContent:
      enter(Block::kText);
      text_ += event.text;
      delta({{"type", "text_delta"}, {"text", event.text}});
      break;
    case Kind::kToolCallBegin:
      close();
      open(Block::kToolUse, {{"type", "tool_use"},
                             {"id", event.id},
                             {"name", event.name},
                             {"input", json::Object()}});
      break;
    case Kind::kToolCallArguments:
      text_ += event.text;
      delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
      break;
    case Kind::kToolCallEnd:
      end_call(event);
      break;
    case Kind::kStop:
    case Kind::kMalformed:
      break;
  }
}

void MessagesReply::enter(Block block) {
  if (block_ == block) {
    return;
  }
  close();
  if (block == Block::kThinking) {
    open(block, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
  } else {
    open(block, {{"type", "text"}, {"text", ""}});
  }
}

void MessagesReply::open(Block block, json::Object content) {
  block_ = block;
  open_ = std::move(content);
  text_.clear();
  frames_ += sse_frame("content_block_start", json::Object{{"type", "content_block_start"},
                                                           {"index", n_blocks_++},
                                                           {"content_block", open_}});
}

void MessagesReply::delta(json::Object delta) {
  frames_ += sse_frame("content_block_delta", json::Object{{"type", "content_block_delta"},
                                                           {"index", n_blocks_ - 1},
                                                           {"delta", std::move(delta)}});
}

void MessagesReply::close() {
  if (block_ == Block::kNone) {
    return;
  }
  if (block_ == Block::kThinking) {
    open_["thinking"] = text_;
    open_["signature"] = ids_.make("tandem");  // opaque, and never read when it comes back
    delta({{"type", "signature_delta"}, {"signature", open_["signature"]}});
  } else if (block_ == Block::kText) {
    open_["text"] = text_;
  }
  frames_ += sse_frame("content_block_stop",
                       json::Object{{"type", "content_block_stop"}, {"index", n_blocks_ - 1}});
  if (block_ != Block::kToolUse) {
    message_["content"].get_array().push_back(std::move(open_));
  }
  block_ = Block::kNone;
}

// A call that was cut has no complete input: the whole form leaves it out (B-05).
void MessagesReply::end_call(const text::StreamEvent& event) {
  const Result<json::Value> input = json::parse(text_.empty() ? "{}" : text_);
  const bool is_whole = !event.truncated && input.ok();
  close();
  if (is_whole) {
    open_["input"] = *input;
    message_["content"].get_array().push_back(std::move(open_));
  }
  has_call_ = has_call_ || is_whole;
  cut_call_ = cut_call_ || !is_whole;
}

// A model that stops inside a call gets "max_tokens": this API's only word for a turn that was cut.
std::string MessagesReply::end_choice(const ChoiceEnd& end) {
  close();
  std::string_view reason = "end_turn";
  if (end.reason == runtime::FinishReason::kLength || cut_call_) {
    reason = "max_tokens";
  } else if (end.stop) {
    reason = "stop_sequence";
    message_["stop_sequence"] = *end.stop;
  } else if (has_call_) {
    reason = "tool_use";
  }
  message_["stop_reason"] = reason;
  message_["usage"] =
      usage_object(end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.completion_tokens);
  return take();
}

std::string MessagesReply::finish() {
  frames_ +=
      sse_frame("message_delta",
                json::Object{{"type", "message_delta"},
                             {"delta", json::Object{{"stop_reason", message_["stop_reason"]},
                                                    {"stop_sequence", message_["stop_sequence"]}}},
                             {"usage", message_["usage"]}});
  frames_ += sse_frame("message_stop", json::Object{{"type", "message_stop"}});
  return take();
}

std::string MessagesReply::fail(const ApiError& error) {
  frames_ += sse_frame("error", error_body(error));
  return take();
}

std::string MessagesReply::heartbeat() {
  return sse_frame("ping", json::Object{{"type", "ping"}});
}

json::Value MessagesReply::body() const {
  return message_;
}

json::Value MessagesReply::error_body(const ApiError& error) const {
  return messages_error_body(error, request_id_);
}

}  // namespace tandem::protocol
