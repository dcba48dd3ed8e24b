// The request of POST /v1/messages and /v1/messages/count_tokens (Anthropic). SOURCE: api.md 3.10,
// A29, A30; field-cases C-09. Nothing of it is kept between requests: the history is complete.
#pragma once

#include "serving/protocol/api_error.h"
#include "serving/protocol/generation_task.h"

namespace tandem::protocol {

// What the parser insists on.
enum class MessagesUse { kGenerate, kCountTokens };

// `cache_control`, `context_management`, `mcp_servers`, `metadata` and other members that change
// nothing here are ignored. Without "thinking" the model answers directly, as this API promises.
// ERRORS: 400 with the field.
Parsed<GenerationTask> parse_messages_request(const json::Value& body, MessagesUse use);

}  // namespace tandem::protocol
