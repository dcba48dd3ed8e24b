// The conversation as plain data, before it becomes a prompt. SOURCE: model.md 5.3, 5.4.
// The protocol layers fill these structs; the encoder never sees JSON of a wire format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::text {

enum class Role {
  kSystem,          // OpenAI's "system" and also its "developer" belong here
  kDeveloper,       // the checkpoint's internal role, written as a user turn
  kUser,            //
  kTool,            // a result; merged into the user turn
  kAssistant,       //
  kLatestReminder,  // a system reminder near the end
};

// Short internal outputs (model.md 5.6). The token of the task takes the place of the header.
enum class Task { kNone, kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };

// One part of a list-valued content. A part that is no text is shown as "[Unsupported TYPE]".
struct ContentPart {
  std::string type = "text";
  std::string text;
};

// One block of a user turn.
struct ContentBlock {
  enum class Kind { kText, kToolResult, kUnsupported };
  Kind kind = Kind::kText;
  std::string text;                // the text; of kUnsupported: the type's name
  std::string tool_use_id;         // kToolResult: id of the call that it answers
  std::vector<ContentPart> parts;  // kToolResult: list content, used instead of text if not empty
};

struct ToolCall {
  std::string id;
  std::string name;
  // A JSON object, or a string with the text of one (both render alike, model.md T39). A string
  // that is no JSON object becomes a single parameter named "arguments", as in the official
  // encoder; null means no parameters.
  json::Value arguments;
};

struct Message {
  Role role = Role::kUser;
  std::string content;
  std::vector<ContentBlock> blocks;  // kUser: used instead of content if not empty
  std::vector<ContentPart> parts;    // kTool: list content, used instead of content if not empty
  std::string tool_call_id;          // kTool

  std::optional<std::string> reasoning;  // kAssistant: text before </think>, without the mark
  std::vector<ToolCall> tool_calls;      // kAssistant

  // kSystem, kDeveloper: tool definitions, each {"type": "function", "function": {...}} or the
  // inner object alone; and the schema of the wanted reply.
  std::vector<json::Value> tools;
  std::optional<json::Value> response_format;

  Task task = Task::kNone;
  bool without_eos = false;     // kAssistant, last message: the model continues this turn
  bool open_reasoning = false;  // with without_eos: it continues inside the reasoning
};

// Puts tools and the reply schema where the model expects them: into the first system or developer
// message, or into an empty system message at the front.
void attach_tools(std::vector<Message>& messages, std::vector<json::Value> tools,
                  std::optional<json::Value> response_format);

}  // namespace tandem::text
