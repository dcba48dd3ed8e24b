// The request of POST /v1/chat/completions: JSON -> GenerationTask and what only this API knows.
// SOURCE: api.md 3.4-3.8.
#pragma once

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/generation_task.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// What the reply needs to know of the request.
struct ChatSettings {
  bool include_usage = false;  // stream_options
  bool logprobs = false;
};

struct ChatRequest {
  GenerationTask task;
  ChatSettings settings;
};

// ERRORS: 400 that names the field.
Parsed<ChatRequest> parse_chat_request(const json::Value& body);

// "messages" of chat and /tokenize; `path` is the place of the array.
std::vector<text::Message> parse_chat_messages(const Fields& body, std::string_view key);

}  // namespace tandem::protocol
