// Bodies of chat requests and a reader of chat streams, shared by the gates.
#pragma once

#include <string>
#include <vector>

#include "operations/verify/gate.h"

namespace tandem::verify {

// One user message, greedy, without thinking.
json::Object chat_body(const GateContext& context, std::string_view user, int max_tokens);

// The thinking of a message or delta: reasoning_content, or reasoning as newer vLLM names it.
std::string reasoning_of(const json::Value& message);

// A tool of the chat form with one required string parameter "city".
json::Object weather_tool();

struct StreamedCall {
  std::string id;
  std::string name;
  std::string arguments;
};

// What a chat stream said.
struct ChatStreamFacts {
  std::string id;
  std::string content;
  std::string reasoning;
  std::vector<StreamedCall> calls;
  std::string finish_reason;
  int finish_count = 0;
  int done_count = 0;
  bool role_first = false;
  json::Value usage;
  std::string bad;  // first breach of the form, "" if none
};

ChatStreamFacts read_chat_stream(const StreamReply& reply);

}  // namespace tandem::verify
