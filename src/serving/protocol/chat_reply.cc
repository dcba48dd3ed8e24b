#include "serving/protocol/chat_reply.h"

#include <algorithm>
#include <utility>

#include "model/text/utf8.h"
#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {
namespace {

// A complete call or none: a call whose arguments broke off would poison the client's transcript.
std::string finish_reason(const ChoiceEnd& end, const text::DecodedMessage& message) {
  if (end.reason == runtime::FinishReason::kLength) {
    return "length";
  }
  const bool has_calls = !message.tool_calls.empty() && message.truncated_calls == 0;
  return has_calls && !end.stop ? "tool_calls" : "stop";
}

json::Object call_delta(const text::StreamEvent& event) {
  if (event.kind == text::StreamEvent::Kind::kToolCallBegin) {
    return {{"index", event.index},
            {"id", event.id},
            {"type", "function"},
            {"function", json::Object{{"name", event.name}, {"arguments", ""}}}};
  }
  return {{"index", event.index}, {"function", json::Object{{"arguments", event.text}}}};
}

// What one event adds to the message; empty for events that clients do not see.
json::Object delta_of(const text::StreamEvent& event) {
  switch (event.kind) {
    case text::StreamEvent::Kind::kReasoning:
      return {{"reasoning_content", event.text}};
    case text::StreamEvent::Kind::kContent:
      return {{"content", event.text}};
    case text::StreamEvent::Kind::kToolCallBegin:
    case text::StreamEvent::Kind::kToolCallArguments:
      return {{"tool_calls", json::Array{call_delta(event)}}};
    case text::StreamEvent::Kind::kToolCallEnd:
    case text::StreamEvent::Kind::kStop:
    case text::StreamEvent::Kind::kMalformed:
      break;
  }
  return {};
}

json::Object message_json(const text::DecodedMessage& message) {
  json::Object out{{"role", "assistant"}};
  out["content"] = message.content.empty() && !message.tool_calls.empty()
                       ? json::Value(nullptr)
                       : json::Value(message.content);
  if (!message.reasoning.empty()) {
    out["reasoning_content"] = message.reasoning;
  }
  if (message.tool_calls.empty()) {
    return out;
  }
  json::Array calls;
  for (const text::DecodedToolCall& call : message.tool_calls) {
    calls.push_back(json::Object{
        {"id", call.id},
        {"type", "function"},
        {"function", json::Object{{"name", call.name}, {"arguments", call.arguments}}}});
  }
  out["tool_calls"] = std::move(calls);
  return out;
}

}  // namespace

ChatReply::ChatReply(ReplyHeader header, ChatSettings settings, int n_choices, TokenText token_text)
    : header_(std::move(header)),
      settings_(settings),
      token_text_(std::move(token_text)),
      choices_(static_cast<std::size_t>(n_choices)) {}

std::string ChatReply::frame(int choice, json::Object delta, json::Value finish_reason,
                             json::Array logprobs) const {
  json::Object entry{{"index", choice}, {"delta", std::move(delta)}};
  entry["logprobs"] = logprobs.empty()
                          ? json::Value(nullptr)
                          : json::Value(json::Object{{"content", std::move(logprobs)}});
  entry["finish_reason"] = std::move(finish_reason);
  json::Object out{{"id", header_.id},
                   {"object", "chat.completion.chunk"},
                   {"created", header_.created},
                   {"model", header_.model},
                   {"system_fingerprint", header_.fingerprint},
                   {"choices", json::Array{std::move(entry)}}};
  if (settings_.include_usage) {
    out["usage"] = nullptr;
  }
  return sse_frame("", out);
}

std::string ChatReply::begin(std::int64_t /*prompt_tokens*/) {
  std::string frames;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    frames += frame(static_cast<int>(i), {{"role", "assistant"}, {"content", ""}}, nullptr, {});
  }
  return frames;
}

json::Array ChatReply::logprob_entries(const ChoiceUpdate& update) const {
  json::Array entries;
  if (!settings_.logprobs) {
    return entries;
  }
  for (const runtime::TokenOutput& output : update.tokens) {
    entries.push_back(chat_logprob(output, token_text_));
  }
  return entries;
}

std::string ChatReply::update(const ChoiceUpdate& update) {
  Choice& choice = choices_[static_cast<std::size_t>(update.choice)];
  json::Array entries = logprob_entries(update);
  choice.logprobs.insert(choice.logprobs.end(), entries.begin(), entries.end());
  std::string frames;
  for (const text::StreamEvent& event : update.events) {
    choice.message.add(event);
    json::Object delta = delta_of(event);
    if (!delta.empty()) {
      const bool takes = event.kind == text::StreamEvent::Kind::kContent;
      frames += frame(update.choice, std::move(delta), nullptr,
                      takes ? std::exchange(entries, {}) : json::Array{});
    }
  }
  if (!entries.empty()) {  // their text waits, it may become a stop string
    frames += frame(update.choice, {{"content", ""}}, nullptr, std::move(entries));
  }
  return frames;
}

std::string ChatReply::end_choice(const ChoiceEnd& end) {
  Choice& choice = choices_[static_cast<std::size_t>(end.choice)];
  choice.finish_reason = finish_reason(end, choice.message);
  add_usage(usage_, end.usage);
  return frame(end.choice, {}, json::Value(choice.finish_reason), {});
}

std::string ChatReply::finish() {
  std::string frames;
  if (settings_.include_usage) {
    frames += sse_frame("", json::Object{{"id", header_.id},
                                         {"object", "chat.completion.chunk"},
                                         {"created", header_.created},
                                         {"model", header_.model},
                                         {"system_fingerprint", header_.fingerprint},
                                         {"choices", json::Array{}},
                                         {"usage", chat_usage(usage_)}});
  }
  return frames + "data: [DONE]\n\n";
}

std::string ChatReply::fail(const ApiError& error) {
  return sse_frame("", openai_error_body(error)) + "data: [DONE]\n\n";
}

std::string ChatReply::heartbeat() {
  return ": waiting\n\n";
}

json::Value ChatReply::body() const {
  json::Array choices;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    choices.push_back(json::Object{
        {"index", i},
        {"message", message_json(choice.message)},
        {"logprobs", settings_.logprobs ? json::Value(json::Object{{"content", choice.logprobs}})
                                        : json::Value(nullptr)},
        {"finish_reason", choice.finish_reason}});
  }
  return json::Object{{"id", header_.id},
                      {"object", "chat.completion"},
                      {"created", header_.created},
                      {"model", header_.model},
                      {"system_fingerprint", header_.fingerprint},
                      {"choices", std::move(choices)},
                      {"usage", chat_usage(usage_)}};
}

json::Value ChatReply::error_body(const ApiError& error) const {
  return openai_error_body(error);
}

json::Object chat_usage(const runtime::Usage& usage) {
  return {
      {"prompt_tokens", usage.prompt_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"prompt_tokens_details", json::Object{{"cached_tokens", usage.cached_tokens}}},
      {"completion_tokens_details",
       json::Object{{"reasoning_tokens", usage.thinking_tokens},
                    {"accepted_prediction_tokens", usage.accepted_tokens},
                    {"rejected_prediction_tokens", usage.drafted_tokens - usage.accepted_tokens}}}};
}

void add_usage(runtime::Usage& sum, const runtime::Usage& choice) {
  sum.prompt_tokens = std::max(sum.prompt_tokens, choice.prompt_tokens);
  // The first choice read the prompt; what the others found cached came from it.
  const bool is_first = sum.completion_tokens == 0;
  sum.cached_tokens =
      is_first ? choice.cached_tokens : std::min(sum.cached_tokens, choice.cached_tokens);
  sum.completion_tokens += choice.completion_tokens;
  sum.thinking_tokens += choice.thinking_tokens;
  sum.drafted_tokens += choice.drafted_tokens;
  sum.accepted_tokens += choice.accepted_tokens;
}

json::Object chat_logprob(const runtime::TokenOutput& output, const TokenText& token_text) {
  json::Object entry = logprob_entry(token_text(output.token), output.logprob.value_or(0));
  json::Array best;
  for (const sampling::TokenLogprob& other : output.best) {
    best.push_back(logprob_entry(token_text(other.token), other.logprob));
  }
  entry["top_logprobs"] = std::move(best);
  return entry;
}

json::Object logprob_entry(std::string_view bytes, float logprob) {
  json::Array numbers;
  for (const char c : bytes) {
    numbers.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  }
  return {{"token", json::String(text::replace_invalid_utf8(bytes))},
          {"logprob", logprob},
          {"bytes", std::move(numbers)}};
}

}  // namespace tandem::protocol
