#include "serving/protocol/response_stream.h"

#include <utility>

#include "foundation/base/check.h"
#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {
namespace {

json::Value text_or_null(const std::string& text) {
  return text.empty() ? json::Value() : json::Value(text);
}

}  // namespace

ResponseStream::ResponseStream(json::Object response) : response_(std::move(response)) {
  response_["status"] = "in_progress";
  for (const char* key : {"completed_at", "incomplete_details", "error", "usage"}) {
    response_[key] = nullptr;
  }
  response_["output"] = json::Array();
}

void ResponseStream::emit(std::string_view type, json::Object fields) {
  json::Object event{{"type", type}, {"sequence_number", sequence_++}};
  for (auto& member : fields) {
    event.emplace(member.key(), std::move(member.value()));
  }
  frames_ += sse_frame(type, event);
}

void ResponseStream::emit_response(std::string_view type) {
  emit(type, {{"response", response_}});
}

void ResponseStream::begin() {
  emit_response("response.created");
  emit_response("response.in_progress");
}

void ResponseStream::in_progress() {
  emit_response("response.in_progress");
}

// Where an event belongs.
json::Object ResponseStream::place(bool with_content) const {
  json::Object out{{"item_id", item_.at("id")},
                   {"output_index", response_.at("output").get_array().size()}};
  if (with_content) {
    out["content_index"] = 0;
  }
  return out;
}

json::Object ResponseStream::part(std::string_view text, json::Array logprobs) const {
  if (kind_ == Kind::kReasoning) {
    return {{"type", "reasoning_text"}, {"text", text}};
  }
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", json::Array()},
          {"logprobs", std::move(logprobs)}};
}

void ResponseStream::open(Kind kind, json::Object item) {
  TANDEM_CHECK(!is_open(), "an item is open already");
  kind_ = kind;
  item_ = std::move(item);
  text_.clear();
  logprobs_.clear();
  sent_logprobs_ = 0;
  emit("response.output_item.added",
       {{"output_index", response_.at("output").get_array().size()}, {"item", item_}});
  if (kind == Kind::kReasoning || kind == Kind::kMessage) {
    json::Object event = place(true);
    event["part"] = part("", {});
    emit("response.content_part.added", std::move(event));
  }
}

void ResponseStream::open_reasoning(std::string id) {
  open(Kind::kReasoning, {{"type", "reasoning"},
                          {"id", std::move(id)},
                          {"status", "in_progress"},
                          {"summary", json::Array()},
                          {"content", json::Array()}});
}

void ResponseStream::open_message(std::string id) {
  open(Kind::kMessage, {{"type", "message"},
                        {"id", std::move(id)},
                        {"status", "in_progress"},
                        {"role", "assistant"},
                        {"content", json::Array()}});
}

void ResponseStream::open_call(std::string id, std::string call_id, const ToolOrigin& origin) {
  json::Object item{{"type", origin.is_custom ? "custom_tool_call" : "function_call"},
                    {"id", std::move(id)},
                    {"call_id", std::move(call_id)},
                    {"name", origin.name},
                    {origin.is_custom ? "input" : "arguments", ""},
                    {"status", "in_progress"}};
  if (!origin.name_space.empty()) {
    item["namespace"] = origin.name_space;
  }
  open(origin.is_custom ? Kind::kCustom : Kind::kFunction, std::move(item));
}

void ResponseStream::delta(std::string_view text, json::Array logprobs) {
  TANDEM_CHECK(is_open(), "a delta needs an open item");
  logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
  if (text.empty()) {
    return;
  }
  text_ += text;
  const bool is_text = kind_ == Kind::kReasoning || kind_ == Kind::kMessage;
  json::Object event = place(is_text);
  event["delta"] = text;
  switch (kind_) {
    case Kind::kReasoning:
      emit("response.reasoning_text.delta", std::move(event));
      break;
    case Kind::kMessage:
      event["logprobs"] = json::Array(
          logprobs_.begin() + static_cast<std::ptrdiff_t>(sent_logprobs_), logprobs_.end());
      sent_logprobs_ = logprobs_.size();
      emit("response.output_text.delta", std::move(event));
      break;
    case Kind::kFunction:
      emit("response.function_call_arguments.delta", std::move(event));
      break;
    case Kind::kCustom:
      emit("response.custom_tool_call_input.delta", std::move(event));
      break;
    case Kind::kNone:
      break;
  }
}

void ResponseStream::close_text(json::Object& item) {
  json::Object event = place(true);
  event["text"] = text_;
  if (kind_ == Kind::kReasoning) {
    emit("response.reasoning_text.done", std::move(event));
  } else {
    event["logprobs"] = logprobs_;
    emit("response.output_text.done", std::move(event));
  }
  json::Object done = place(true);
  done["part"] = part(text_, logprobs_);
  emit("response.content_part.done", std::move(done));
  item["content"] = json::Array{part(text_, logprobs_)};
}

void ResponseStream::close_call(json::Object& item) {
  const char* const key = kind_ == Kind::kCustom ? "input" : "arguments";
  json::Object event = place(false);
  event[key] = text_;
  event["name"] = item_.at("name");
  emit(kind_ == Kind::kCustom ? "response.custom_tool_call_input.done"
                              : "response.function_call_arguments.done",
       std::move(event));
  item[key] = text_;
}

void ResponseStream::close(std::string_view status, std::optional<std::string> encrypted) {
  if (!is_open()) {
    return;
  }
  json::Object item = item_;
  item["status"] = status;
  if (kind_ == Kind::kReasoning || kind_ == Kind::kMessage) {
    close_text(item);
  } else {
    close_call(item);
  }
  if (encrypted) {
    item["encrypted_content"] = std::move(*encrypted);
  }
  json::Array& output = response_["output"].get_array();
  emit("response.output_item.done", {{"output_index", output.size()}, {"item", item}});
  output.push_back(std::move(item));
  kind_ = Kind::kNone;
}

void ResponseStream::end(const ResponseEnd& end) {
  TANDEM_CHECK(!is_open(), "a response ends after its items");
  response_["status"] = end.status;
  response_["usage"] = end.usage;
  response_["completed_at"] = end.completed_at;
  if (!end.incomplete_reason.empty()) {
    response_["incomplete_details"] = json::Object{{"reason", end.incomplete_reason}};
  }
}

void ResponseStream::terminal() {
  const std::string_view status = response_.at("status").get_string();
  if (status == "completed" || status == "failed") {
    emit_response(fmt::format("response.{}", status));
  } else {
    emit_response("response.incomplete");
  }
}

// OpenAI's error event is flat, OpenResponses' is nested; readers of either find theirs.
void ResponseStream::fail(const ApiError& error, std::int64_t completed_at) {
  const json::Object payload{{"type", error.type},
                             {"code", text_or_null(error.code)},
                             {"message", error.message},
                             {"param", text_or_null(error.param)}};
  emit("error", {{"code", payload.at("code")},
                 {"message", error.message},
                 {"param", payload.at("param")},
                 {"error", payload}});
  kind_ = Kind::kNone;
  response_["status"] = "failed";
  response_["completed_at"] = completed_at;
  response_["error"] = json::Object{{"code", error.code.empty() ? error.type : error.code},
                                    {"message", error.message}};
  emit_response("response.failed");
}

}  // namespace tandem::protocol
