// GenerationTask: what a request of any API asks for, after validation and before the prompt is
// rendered. Each API has one parser that makes it and one Reply that speaks its wire format back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/sampling/sampling_params.h"
#include "foundation/base/ids.h"
#include "foundation/json/json.h"
#include "model/text/chat_encoder.h"
#include "model/text/chat_message.h"

namespace tandem::protocol {

// A function that the model may call.
struct Tool {
  grammar::ToolSpec spec;  // name, parameter schema, strict
  json::Value definition;  // {"name", "description", "parameters"}: what the prompt shows
  bool allowed = true;     // false: the prompt shows it, but the grammar lets no call of it
};

// The wanted form of the answer that is no tool call.
struct ReplyFormat {
  enum class Kind { kText, kJsonObject, kJsonSchema, kRegex, kEbnf };
  Kind kind = Kind::kText;
  json::Value schema;  // kJsonSchema
  bool strict = false;
  std::string source;  // kRegex, kEbnf
  std::string param;   // the field that held it, for errors: "response_format"
};

// The conversation of chat, Responses and Messages.
struct ChatPrompt {
  std::vector<text::Message> messages;     // without tools; the server attaches them
  std::optional<text::ThinkingMode> mode;  // nullopt: the server's default
  std::optional<text::Effort> effort;      // nullopt: the server's default
};

// The raw prompt of /v1/completions: text or tokens.
using RawPrompt = std::variant<std::string, std::vector<TokenId>>;

struct GenerationTask {
  std::string model;  // as the client named it
  std::variant<ChatPrompt, RawPrompt> prompt;
  std::vector<Tool> tools;
  grammar::ToolChoice tool_choice;
  bool parallel_tool_calls = true;
  ReplyFormat format;
  sampling::SamplingParams sampling;
  std::int64_t max_tokens = -1;  // -1: up to the model's context
  std::vector<std::string> stop;
  bool include_stop = false;
  bool ignore_eos = false;
  bool speculate = true;  // our own field "speculation": false drafts nothing for this request
  std::optional<int> thinking_budget;  // tokens; nullopt: the server's default
  bool drop_oldest = false;            // a conversation that is too long loses its oldest turns
  int n = 1;                           // choices
  bool stream = false;
};

}  // namespace tandem::protocol
