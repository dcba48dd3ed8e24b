#include "serving/protocol/responses_reply.h"

#include <utility>

#include "serving/protocol/opaque_text.h"
#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {
namespace {

json::Object skeleton(const ResponsesSettings& settings, const std::string& id,
                      const std::string& model, std::int64_t created_at) {
  json::Object response{
      {"id", id}, {"object", "response"}, {"created_at", created_at}, {"model", model}};
  for (const auto& member : settings.echo) {
    response[member.key()] = member.value();
  }
  return response;
}

std::string_view text_member(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : "";
}

// The one part of a stored text item.
const json::Object& first_part(const json::Object& item) {
  static const json::Object none;
  const json::Value* content = item.if_contains("content");
  const bool has_part = content != nullptr && content->is_array() &&
                        !content->get_array().empty() && content->get_array()[0].is_object();
  return has_part ? content->get_array()[0].get_object() : none;
}

json::Array logprobs_of(const json::Object& part) {
  const json::Value* logprobs = part.if_contains("logprobs");
  return logprobs != nullptr && logprobs->is_array() ? logprobs->get_array() : json::Array();
}

void replay_item(const json::Object& item, ResponseStream& stream) {
  const std::string_view type = text_member(item, "type");
  std::string id(text_member(item, "id"));
  if (type == "reasoning") {
    stream.open_reasoning(std::move(id));
    stream.delta(text_member(first_part(item), "text"));
  } else if (type == "message") {
    stream.open_message(std::move(id));
    stream.delta(text_member(first_part(item), "text"), logprobs_of(first_part(item)));
  } else {
    ToolOrigin origin;
    origin.is_custom = type == "custom_tool_call";
    origin.name = text_member(item, "name");
    origin.name_space = text_member(item, "namespace");
    stream.open_call(std::move(id), std::string(text_member(item, "call_id")), origin);
    stream.delta(text_member(item, origin.is_custom ? "input" : "arguments"));
  }
  std::optional<std::string> encrypted;
  if (item.contains("encrypted_content")) {
    encrypted = text_member(item, "encrypted_content");
  }
  stream.close(text_member(item, "status"), std::move(encrypted));
}

}  // namespace

json::Object responses_usage(const runtime::Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", json::Object{{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", json::Object{{"reasoning_tokens", usage.thinking_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

ResponsesReply::ResponsesReply(ResponsesSettings settings, std::string model, IdSource& ids,
                               const Clock& clock, ResponseSink sink, TokenText token_text)
    : settings_(std::move(settings)),
      id_(ids.make("resp_")),
      ids_(ids),
      clock_(clock),
      sink_(std::move(sink)),
      token_text_(std::move(token_text)),
      stream_(skeleton(settings_, id_, model, clock.unix_seconds())) {}

std::string ResponsesReply::begin(std::int64_t /*prompt_tokens*/) {
  stream_.begin();
  return stream_.take();
}

std::string ResponsesReply::update(const ChoiceUpdate& update) {
  json::Array logprobs = logprob_entries(update);
  for (const text::StreamEvent& one : update.events) {
    event(one, logprobs);
  }
  if (!logprobs.empty() && channel_ == Channel::kMessage) {
    stream_.delta("", std::move(logprobs));  // their text waits, it may become markup
  }
  return stream_.take();
}

json::Array ResponsesReply::logprob_entries(const ChoiceUpdate& update) const {
  json::Array entries;
  if (!settings_.logprobs || !token_text_) {
    return entries;
  }
  for (const runtime::TokenOutput& output : update.tokens) {
    entries.push_back(chat_logprob(output, token_text_));
  }
  return entries;
}

void ResponsesReply::event(const text::StreamEvent& event, json::Array& logprobs) {
  using Kind = text::StreamEvent::Kind;
  switch (event.kind) {
    case Kind::kReasoning:
      enter(Channel::kReasoning);
      stream_.delta(event.text);
      break;
    case Kind::kContent:
      enter(Channel::kMessage);
      stream_.delta(event.text, std::exchange(logprobs, {}));
      break;
    case Kind::kToolCallBegin:
      begin_call(event);
      break;
    case Kind::kToolCallArguments:
      call_arguments(event.text);
      break;
    case Kind::kToolCallEnd:
      end_call(event);
      break;
    case Kind::kStop:
    case Kind::kMalformed:
      break;
  }
}

void ResponsesReply::enter(Channel channel) {
  if (channel_ == channel) {
    return;
  }
  leave("completed");
  channel_ = channel;
  if (channel == Channel::kReasoning) {
    stream_.open_reasoning(ids_.make("rs_"));
  } else if (channel == Channel::kMessage) {
    stream_.open_message(ids_.make("msg_"));
  }
}

void ResponsesReply::leave(std::string_view status) {
  std::optional<std::string> encrypted;
  if (channel_ == Channel::kReasoning && settings_.encrypted_reasoning) {
    encrypted = wrap_opaque(stream_.text());
  }
  stream_.close(status, std::move(encrypted));
  channel_ = Channel::kNone;
}

void ResponsesReply::begin_call(const text::StreamEvent& event) {
  leave("completed");
  channel_ = Channel::kCall;
  const auto found = settings_.tool_origins.find(event.name);
  const ToolOrigin origin =
      found == settings_.tool_origins.end() ? ToolOrigin{false, event.name, {}} : found->second;
  custom_call_ = origin.is_custom;
  custom_json_.clear();
  custom_reader_ = StringMemberReader();
  stream_.open_call(ids_.make(origin.is_custom ? "ctc_" : "fc_"), event.id, origin);
}

void ResponsesReply::call_arguments(std::string_view text) {
  if (custom_call_) {
    custom_json_ += text;
    stream_.delta(custom_reader_.feed(text));
  } else {
    stream_.delta(text);
  }
}

void ResponsesReply::end_call(const text::StreamEvent& event) {
  if (custom_call_ && !custom_reader_.found()) {
    stream_.delta(custom_json_);  // not the form that was asked for: the client sees what came
  }
  cut_call_ = cut_call_ || event.truncated;
  leave(event.truncated ? "incomplete" : "completed");
}

std::string ResponsesReply::end_choice(const ChoiceEnd& end) {
  const bool is_cut = end.reason != runtime::FinishReason::kStop;
  leave(is_cut ? "incomplete" : "completed");
  ResponseEnd last;
  last.usage = responses_usage(end.usage);
  last.completed_at = clock_.unix_seconds();
  switch (end.reason) {
    case runtime::FinishReason::kStop:
      if (cut_call_) {
        last.status = "incomplete";
        last.incomplete_reason = "unfinished_tool_call";
      }
      break;
    case runtime::FinishReason::kLength:
      last.status = "incomplete";
      last.incomplete_reason = "max_output_tokens";
      break;
    case runtime::FinishReason::kCancelled:
      last.status = "cancelled";
      break;
    case runtime::FinishReason::kError:
      last.status = "failed";
      break;
  }
  stream_.end(last);
  if (sink_ && !sink_(stream_.response())) {
    stream_.not_stored();
  }
  return stream_.take();
}

std::string ResponsesReply::finish() {
  stream_.terminal();
  return stream_.take();
}

std::string ResponsesReply::fail(const ApiError& error) {
  stream_.fail(error, clock_.unix_seconds());
  return stream_.take();
}

std::string ResponsesReply::heartbeat() {
  stream_.in_progress();
  return stream_.take();
}

json::Value ResponsesReply::body() const {
  return stream_.response();
}

json::Value ResponsesReply::error_body(const ApiError& error) const {
  return openai_error_body(error);
}

std::string replay_response(const json::Object& response, std::int64_t starting_after) {
  ResponseStream stream(response);
  stream.begin();
  for (const json::Value& item : response.at("output").get_array()) {
    replay_item(item.get_object(), stream);
  }
  ResponseEnd end;
  end.status = text_member(response, "status");
  end.usage = response.at("usage");
  end.completed_at = response.at("completed_at").to_number<std::int64_t>();
  if (const json::Value* reason = json::find(response.at("incomplete_details"), "reason")) {
    end.incomplete_reason = reason->get_string();
  }
  stream.end(end);
  stream.terminal();
  const std::string frames = stream.take();
  std::string out;
  std::size_t at = 0;
  for (std::int64_t sequence = 0; at < frames.size(); ++sequence) {
    const std::size_t end_of_frame = frames.find("\n\n", at) + 2;
    if (sequence > starting_after) {
      out.append(frames, at, end_of_frame - at);
    }
    at = end_of_frame;
  }
  return out;
}

}  // namespace tandem::protocol
