// ChatReply: the Reply of POST /v1/chat/completions. SOURCE: api.md 3.4.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/protocol/chat_request.h"
#include "serving/protocol/reply.h"

namespace tandem::protocol {

// The bytes of a token, for log-probabilities.
using TokenText = std::function<std::string_view(TokenId)>;

// What all frames of one reply repeat.
struct ReplyHeader {
  std::string id;
  std::string model;
  std::string fingerprint;
  std::int64_t created = 0;  // seconds since 1970
};

class ChatReply final : public Reply {
 public:
  ChatReply(ReplyHeader header, ChatSettings settings, int n_choices, TokenText token_text);

  std::string begin(std::int64_t prompt_tokens) override;
  std::string update(const ChoiceUpdate& update) override;
  std::string end_choice(const ChoiceEnd& end) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  std::string heartbeat() override;
  json::Value body() const override;
  json::Value error_body(const ApiError& error) const override;

 private:
  struct Choice {
    text::DecodedMessage message;
    json::Array logprobs;
    std::string finish_reason;
  };

  std::string frame(int choice, json::Object delta, json::Value finish_reason,
                    json::Array logprobs) const;
  json::Array logprob_entries(const ChoiceUpdate& update) const;
  json::Object usage() const;

  ReplyHeader header_;
  ChatSettings settings_;
  TokenText token_text_;
  std::vector<Choice> choices_;
  runtime::Usage usage_;  // the prompt once, all choices' tokens
};

// {"prompt_tokens", ...}: what chat and completions call usage.
json::Object chat_usage(const runtime::Usage& usage);

// Adds one choice's usage to the sum of a reply.
void add_usage(runtime::Usage& sum, const runtime::Usage& choice);

// {"token", "logprob", "bytes"} of chat's log-probabilities.
json::Object logprob_entry(std::string_view bytes, float logprob);

// The same with "top_logprobs", as chat and Responses show a token.
json::Object chat_logprob(const runtime::TokenOutput& output, const TokenText& token_text);

}  // namespace tandem::protocol
