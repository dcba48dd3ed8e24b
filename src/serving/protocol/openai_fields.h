// What the two OpenAI APIs share: function tools, tool_choice and reasoning effort, each in every
// form that clients send. Both APIs accept the other's form too (api.md 3.6).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/protocol/generation_task.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// A function tool from its parts. `parameters` is null or a JSON Schema object.
Tool make_tool(std::string name, std::optional<std::string> description,
               const json::Value* parameters, bool strict);

// {"type": "function", "name", ...} or {"type": "function", "function": {"name", ...}}.
// nullopt after an error.
std::optional<Tool> parse_function_tool(const Fields& tool);

// Which tools may be called: the mode, and for "allowed_tools" the names of the allowed ones.
struct ToolChoiceFields {
  grammar::ToolChoice choice;
  std::optional<std::vector<std::string>> allowed;
};

// "none", "auto", "required" ("any"), {"type": "function", "name"} or with a nested "function",
// {"type": "custom", "name"}, {"type": "allowed_tools", "mode", "tools"} flat or nested.
ToolChoiceFields parse_tool_choice(const Fields& body, std::string_view key);

// Checks that the choice names tools that exist and marks the tools that it excludes.
void apply_tool_choice(const ToolChoiceFields& fields, std::string_view param, GenerationTask& task,
                       FieldErrors& errors);

// How much the model shall think. SOURCE: api.md 3.5.
struct Thinking {
  text::ThinkingMode mode = text::ThinkingMode::kThinking;
  std::optional<text::Effort> effort;
};

// none, minimal, low, medium, high, xhigh, max, ultra; nullopt for any other word.
std::optional<Thinking> thinking_of_effort(std::string_view word);

}  // namespace tandem::protocol
