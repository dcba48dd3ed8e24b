// The request of POST /v1/responses: JSON -> GenerationTask and what only this API knows.
// SOURCE: api.md 3.3, 3.5-3.7; OpenResponses 2026-04-24.
#pragma once

#include <map>
#include <string>

#include "serving/protocol/generation_task.h"
#include "serving/protocol/ids.h"
#include "serving/protocol/responses_items.h"
#include "serving/protocol/responses_tools.h"

namespace tandem::protocol {

// What the reply needs to know of the request.
struct ResponsesSettings {
  json::Object echo;  // the members of the response object that repeat the request
  std::map<std::string, ToolOrigin> tool_origins;
  std::string previous_response_id;  // empty: none
  bool store = true;
  bool encrypted_reasoning = false;  // "include": reasoning.encrypted_content
  bool logprobs = false;             // "include": message.output_text.logprobs, or top_logprobs
};

struct ResponsesRequest {
  GenerationTask task;
  ResponsesSettings settings;
  json::Array history;  // items of previous_response_id and all before it
  json::Array input;    // the new items in normal form: what is stored and listed
};

// ERRORS: 400 with the field; "previous_response_not_found" from the lookup.
Parsed<ResponsesRequest> parse_responses_request(const json::Value& body,
                                                 const ResponseLookup& lookup, IdSource& ids);

}  // namespace tandem::protocol
