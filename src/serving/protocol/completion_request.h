// The request of POST /v1/completions: a raw prompt, continued. SOURCE: api.md 3.7.
#pragma once

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/generation_task.h"

namespace tandem::protocol {

// What the reply needs to know of the request.
struct CompletionSettings {
  bool include_usage = false;  // stream_options
  int logprobs = -1;           // -1: none; n: of the token and of the n best
  bool echo = false;           // the prompt stands before the text
};

struct CompletionRequest {
  GenerationTask task;
  CompletionSettings settings;
};

// One prompt per request: a string, a list of token ids, or a list that holds one of them.
// ERRORS: 400 that names the field.
Parsed<CompletionRequest> parse_completion_request(const json::Value& body);

}  // namespace tandem::protocol
