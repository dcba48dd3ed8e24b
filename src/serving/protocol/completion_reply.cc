#include "serving/protocol/completion_reply.h"

#include <utility>

#include "model/text/utf8.h"
#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {
namespace {

void append(json::Array& all, const json::Array& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Text that this API shows: everything, since a raw prompt has no channels.
bool is_text(const text::StreamEvent& event) {
  return event.kind == text::StreamEvent::Kind::kContent ||
         event.kind == text::StreamEvent::Kind::kReasoning;
}

std::int64_t count_characters(std::string_view text) {
  std::int64_t n = 0;
  for (const char c : text) {
    n += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  }
  return n;
}

}  // namespace

CompletionReply::CompletionReply(ReplyHeader header, CompletionSettings settings, int n_choices,
                                 TokenText token_text, std::string echo)
    : header_(std::move(header)),
      settings_(settings),
      token_text_(std::move(token_text)),
      choices_(static_cast<std::size_t>(n_choices)) {
  for (Choice& choice : choices_) {
    choice.text = echo;
  }
}

json::Object CompletionReply::head() const {
  return {{"id", header_.id},
          {"object", "text_completion"},
          {"created", header_.created},
          {"model", header_.model},
          {"system_fingerprint", header_.fingerprint}};
}

std::string CompletionReply::frame(int choice, std::string_view text, json::Value logprobs,
                                   json::Value finish_reason) const {
  json::Object out = head();
  out["choices"] = json::Array{json::Object{{"index", choice},
                                            {"text", text},
                                            {"logprobs", std::move(logprobs)},
                                            {"finish_reason", std::move(finish_reason)}}};
  if (settings_.include_usage) {
    out["usage"] = nullptr;
  }
  return sse_frame("", out);
}

json::Value CompletionReply::shown(const Logprobs& logprobs) const {
  if (settings_.logprobs < 0) {
    return nullptr;
  }
  return json::Object{{"tokens", logprobs.tokens},
                      {"token_logprobs", logprobs.token_logprobs},
                      {"top_logprobs", logprobs.top_logprobs},
                      {"text_offset", logprobs.text_offset}};
}

CompletionReply::Logprobs CompletionReply::take_logprobs(Choice& choice,
                                                         const ChoiceUpdate& update) const {
  Logprobs more;
  for (const runtime::TokenOutput& output : update.tokens) {
    const std::string token = text::replace_invalid_utf8(token_text_(output.token));
    json::Object best;
    for (const sampling::TokenLogprob& other : output.best) {
      best[text::replace_invalid_utf8(token_text_(other.token))] = other.logprob;
    }
    more.tokens.push_back(json::Value(token));
    more.token_logprobs.push_back(output.logprob.value_or(0));
    more.top_logprobs.push_back(std::move(best));
    more.text_offset.push_back(choice.offset);
    choice.offset += count_characters(token);
  }
  append(choice.logprobs.tokens, more.tokens);
  append(choice.logprobs.token_logprobs, more.token_logprobs);
  append(choice.logprobs.top_logprobs, more.top_logprobs);
  append(choice.logprobs.text_offset, more.text_offset);
  return more;
}

std::string CompletionReply::begin(std::int64_t /*prompt_tokens*/) {
  std::string frames;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].text.empty()) {
      frames += frame(static_cast<int>(i), choices_[i].text, nullptr, nullptr);
    }
  }
  return frames;
}

std::string CompletionReply::update(const ChoiceUpdate& update) {
  Choice& choice = choices_[static_cast<std::size_t>(update.choice)];
  std::string text;
  for (const text::StreamEvent& event : update.events) {
    text += is_text(event) ? event.text : "";
  }
  choice.text += text;
  const Logprobs more = take_logprobs(choice, update);
  if (text.empty() && more.tokens.empty()) {
    return {};
  }
  return frame(update.choice, text, shown(more), nullptr);
}

std::string CompletionReply::end_choice(const ChoiceEnd& end) {
  Choice& choice = choices_[static_cast<std::size_t>(end.choice)];
  choice.finish_reason = end.reason == runtime::FinishReason::kLength ? "length" : "stop";
  add_usage(usage_, end.usage);
  return frame(end.choice, "", nullptr, json::Value(choice.finish_reason));
}

std::string CompletionReply::finish() {
  std::string frames;
  if (settings_.include_usage) {
    json::Object out = head();
    out["choices"] = json::Array();
    out["usage"] = chat_usage(usage_);
    frames += sse_frame("", out);
  }
  return frames + "data: [DONE]\n\n";
}

std::string CompletionReply::fail(const ApiError& error) {
  return sse_frame("", openai_error_body(error)) + "data: [DONE]\n\n";
}

std::string CompletionReply::heartbeat() {
  return ": waiting\n\n";
}

json::Value CompletionReply::body() const {
  json::Array choices;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices.push_back(json::Object{{"index", i},
                                   {"text", choices_[i].text},
                                   {"logprobs", shown(choices_[i].logprobs)},
                                   {"finish_reason", choices_[i].finish_reason}});
  }
  json::Object out = head();
  out["choices"] = std::move(choices);
  out["usage"] = chat_usage(usage_);
  return out;
}

json::Value CompletionReply::error_body(const ApiError& error) const {
  return openai_error_body(error);
}

}  // namespace tandem::protocol
