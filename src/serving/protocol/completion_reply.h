// CompletionReply: the Reply of POST /v1/completions. SOURCE: api.md 3.7.
#pragma once

#include <string>
#include <vector>

#include "serving/protocol/chat_reply.h"
#include "serving/protocol/completion_request.h"
#include "serving/protocol/reply.h"

namespace tandem::protocol {

class CompletionReply final : public Reply {
 public:
  // `echo`: the prompt's text if it shall stand before the answer, else empty.
  CompletionReply(ReplyHeader header, CompletionSettings settings, int n_choices,
                  TokenText token_text, std::string echo);

  std::string begin(std::int64_t prompt_tokens) override;
  std::string update(const ChoiceUpdate& update) override;
  std::string end_choice(const ChoiceEnd& end) override;
  std::string finish() override;
  std::string fail(const ApiError& error) override;
  std::string heartbeat() override;
  json::Value body() const override;
  json::Value error_body(const ApiError& error) const override;

 private:
  // The four lists of this API's log-probabilities.
  struct Logprobs {
    json::Array tokens;
    json::Array token_logprobs;
    json::Array top_logprobs;
    json::Array text_offset;
  };
  struct Choice {
    std::string text;
    Logprobs logprobs;
    std::int64_t offset = 0;  // characters of the tokens until now
    std::string finish_reason;
  };

  json::Object head() const;
  std::string frame(int choice, std::string_view text, json::Value logprobs,
                    json::Value finish_reason) const;
  Logprobs take_logprobs(Choice& choice, const ChoiceUpdate& update) const;
  json::Value shown(const Logprobs& logprobs) const;

  ReplyHeader header_;
  CompletionSettings settings_;
  TokenText token_text_;
  std::vector<Choice> choices_;
  runtime::Usage usage_;
};

}  // namespace tandem::protocol
