#include "model/text/chat_encoder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/text/chat_text.h"

namespace tandem::text {
namespace {

// A message with the index that it has in the caller's list, for error messages.
struct Turn {
  Message message;
  std::size_t index = 0;
};

bool opens_turn(const Message& message) {
  return message.role == Role::kUser || message.role == Role::kDeveloper;
}

ContentBlock result_block(const Message& tool) {
  ContentBlock block;
  block.kind = ContentBlock::Kind::kToolResult;
  block.text = tool.content;
  block.tool_use_id = tool.tool_call_id;
  block.parts = tool.parts;
  return block;
}

std::vector<ContentBlock> blocks_of(const Message& message) {
  if (message.role == Role::kTool) {
    return {result_block(message)};
  }
  if (!message.blocks.empty()) {
    return message.blocks;
  }
  ContentBlock block;
  block.text = message.content;
  return {block};
}

// Step 1: results and user texts in a row become one user message.
std::vector<Turn> merge_turns(std::span<const Message> messages) {
  std::vector<Turn> out;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    if (message.role != Role::kTool && message.role != Role::kUser) {
      out.push_back({message, i});
      continue;
    }
    const bool joins = !out.empty() && out.back().message.role == Role::kUser &&
                       (message.role == Role::kTool || out.back().message.task == Task::kNone);
    if (!joins) {
      Message user;
      user.task = message.role == Role::kUser ? message.task : Task::kNone;
      out.push_back({std::move(user), i});
    }
    std::vector<ContentBlock>& blocks = out.back().message.blocks;
    const std::vector<ContentBlock> more = blocks_of(message);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }
  return out;
}

// Step 2: results stand in the order of the calls that they answer.
void sort_results(std::vector<Turn>& turns) {
  std::map<std::string, std::size_t> order;
  const auto rank = [&order](const ContentBlock& block) {
    const auto found = order.find(block.tool_use_id);
    return found == order.end() ? std::size_t{0} : found->second;
  };
  for (Turn& turn : turns) {
    Message& message = turn.message;
    if (message.role == Role::kAssistant && !message.tool_calls.empty()) {
      order.clear();
      for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
        if (!message.tool_calls[i].id.empty()) {
          order[message.tool_calls[i].id] = i;
        }
      }
    }
    std::vector<ContentBlock> results;
    for (const ContentBlock& block : message.blocks) {
      if (block.kind == ContentBlock::Kind::kToolResult) {
        results.push_back(block);
      }
    }
    std::stable_sort(
        results.begin(), results.end(),
        [&rank](const ContentBlock& a, const ContentBlock& b) { return rank(a) < rank(b); });
    auto next = results.begin();
    for (ContentBlock& block : message.blocks) {
      if (block.kind == ContentBlock::Kind::kToolResult) {
        block = *next++;
      }
    }
  }
}

std::ptrdiff_t last_user(const std::vector<Turn>& turns) {
  for (std::size_t i = turns.size(); i > 0; --i) {
    if (opens_turn(turns[i - 1].message)) {
      return static_cast<std::ptrdiff_t>(i) - 1;
    }
  }
  return -1;
}

// Step 4: before the last user turn, developer messages go. (Their reasoning needs no removal: it
// is written only after that turn.)
std::vector<Turn> drop_developers(std::vector<Turn> turns) {
  const std::ptrdiff_t last = last_user(turns);
  std::vector<Turn> out;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (static_cast<std::ptrdiff_t>(i) >= last || turns[i].message.role != Role::kDeveloper) {
      out.push_back(std::move(turns[i]));
    }
  }
  return out;
}

const json::Value& schema_of(const json::Value& tool) {
  const json::Value* function = json::find(tool, "function");
  return function != nullptr ? *function : tool;
}

std::string joined_parts(const std::vector<ContentPart>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += i == 0 ? "" : "\n\n";
    out += parts[i].type == "text" ? parts[i].text : fmt::format("[Unsupported {}]", parts[i].type);
  }
  return out;
}

class Renderer {
 public:
  Renderer(const ChatOptions& options, std::vector<Turn> turns, bool drop)
      : options_(options), turns_(std::move(turns)), drop_(drop), last_user_(last_user(turns_)) {}

  Result<Prompt> render(std::size_t first, bool from_start) {
    if (from_start) {
      mark(kBosText);
      if (thinking()) {
        mark(effort_prefix(options_.format, options_.effort));
      }
    }
    for (std::size_t i = first; i < turns_.size(); ++i) {
      const Status status = turn(i);
      if (!status.ok()) {
        return status.with_context(fmt::format("messages[{}]", turns_[i].index));
      }
    }
    return std::move(prompt_);
  }

 private:
  bool thinking() const { return options_.mode == ThinkingMode::kThinking; }

  bool after_last_user(std::size_t i) const { return static_cast<std::ptrdiff_t>(i) > last_user_; }

  // Text of ours, which may form added tokens.
  void mark(std::string_view text) { append(text, true); }

  // Text from outside.
  void plain(std::string_view text) { append(text, options_.trust_text); }

  void append(std::string_view text, bool trusted) {
    if (text.empty()) {
      return;
    }
    if (prompt_.parts.empty() || prompt_.parts.back().trusted != trusted) {
      prompt_.parts.push_back({std::string(), trusted});
    }
    prompt_.parts.back().text += text;
    prompt_.starts_in_reasoning = trusted && text == kThinkBegin;
  }

  Status turn(std::size_t i) {
    const Message& message = turns_[i].message;
    switch (message.role) {
      case Role::kDeveloper:
        if (message.content.empty()) {
          return invalid_argument("a developer message is empty, expected some content");
        }
        mark(kUserText);
        instructions(message);
        break;
      case Role::kSystem:
        instructions(message);
        break;
      case Role::kUser:
        mark(kUserText);
        user_blocks(message.blocks);
        break;
      case Role::kLatestReminder:
        mark(kLatestReminderText);
        plain(message.content);
        break;
      case Role::kAssistant:
        TANDEM_TRY(assistant(i));
        break;
      case Role::kTool:
        TANDEM_CHECK(false, "tool messages were merged into user messages");
    }
    suffix(i);
    return ok_status();
  }

  void instructions(const Message& message) {
    plain(message.content);
    if (!message.tools.empty()) {
      mark("\n\n");
      mark(kToolsBegin);
      for (std::size_t i = 0; i < message.tools.size(); ++i) {
        mark(i == 0 ? "" : "\n");
        plain(json::dump_python(schema_of(message.tools[i])));
      }
      mark(kToolsEnd);
    }
    if (message.response_format) {
      mark("\n\n");
      mark(kResponseFormatBegin);
      plain(json::dump_python(*message.response_format));
    }
  }

  void user_blocks(const std::vector<ContentBlock>& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const ContentBlock& block = blocks[i];
      mark(i == 0 ? "" : "\n\n");
      switch (block.kind) {
        case ContentBlock::Kind::kText:
          plain(block.text);
          break;
        case ContentBlock::Kind::kToolResult:
          mark("<tool_result>");
          plain(block.parts.empty() ? block.text : joined_parts(block.parts));
          mark("</tool_result>");
          break;
        case ContentBlock::Kind::kUnsupported:
          plain(fmt::format("[Unsupported {}]", block.text));
          break;
      }
    }
  }

  Status assistant(std::size_t i) {
    const Message& message = turns_[i].message;
    const bool is_open = message.without_eos && message.open_reasoning;
    if (is_open && (!message.content.empty() || !message.tool_calls.empty() || !thinking())) {
      return invalid_argument(
          "open_reasoning continues the reasoning, expected thinking mode and an assistant message "
          "with neither content nor tool calls");
    }
    const bool after_task = i > 0 && turns_[i - 1].message.task != Task::kNone;
    if (thinking() && !after_task && (!drop_ || after_last_user(i))) {
      plain(message.reasoning.value_or(""));
      if (is_open) {
        prompt_.starts_in_reasoning = true;
        return ok_status();
      }
      mark(kThinkEnd);
    }
    plain(message.content);
    if (!message.tool_calls.empty()) {
      tool_calls(message.tool_calls);
    }
    if (!message.without_eos) {
      mark(kEosText);
    }
    return ok_status();
  }

  void tool_calls(const std::vector<ToolCall>& calls) {
    mark("\n\n<｜DSML｜tool_calls>\n");
    for (std::size_t i = 0; i < calls.size(); ++i) {
      mark(i == 0 ? "" : "\n");
      mark("<｜DSML｜invoke name=\"");
      plain(calls[i].name);
      mark("\">\n");
      parameters(calls[i].arguments);
      mark("\n</｜DSML｜invoke>");
    }
    mark("\n</｜DSML｜tool_calls>");
  }

  // Arguments that are no JSON object become one parameter named "arguments" (model.md 5.4).
  void parameters(const json::Value& arguments) {
    json::Value object = arguments;
    if (arguments.is_string()) {
      Result<json::Value> parsed = json::parse(arguments.get_string());
      if (parsed.ok() && parsed->is_object()) {
        object = std::move(*parsed);
      }
    }
    if (object.is_null()) {
      object = json::Object();
    } else if (!object.is_object()) {
      object = json::Object{{"arguments", std::move(object)}};
    }
    bool first = true;
    for (const auto& entry : object.get_object()) {
      mark(first ? "" : "\n");
      first = false;
      parameter(entry.key(), entry.value());
    }
  }

  void parameter(std::string_view name, const json::Value& value) {
    mark("<｜DSML｜parameter name=\"");
    plain(name);
    mark(value.is_string() ? "\" string=\"true\">" : "\" string=\"false\">");
    plain(value.is_string() ? std::string(value.get_string()) : json::dump_python(value));
    mark("</｜DSML｜parameter>");
  }

  // What opens the model's turn behind message i, if it is the model's turn.
  void suffix(std::size_t i) {
    const Message& message = turns_[i].message;
    const bool is_last = i + 1 == turns_.size();
    if (!is_last && turns_[i + 1].message.role != Role::kAssistant &&
        turns_[i + 1].message.role != Role::kLatestReminder) {
      return;
    }
    if (message.task != Task::kNone) {
      if (message.task == Task::kAction) {
        header(thinking());
      }
      mark(task_token(message.task));
    } else if (opens_turn(message)) {
      header(thinking() && (!drop_ || static_cast<std::ptrdiff_t>(i) >= last_user_));
    } else if (is_last && options_.always_open_turn && !message.without_eos) {
      header(thinking());
    }
  }

  void header(bool think) {
    mark(kAssistantText);
    mark(think ? kThinkBegin : kThinkEnd);
  }

  const ChatOptions& options_;
  std::vector<Turn> turns_;
  bool drop_;
  std::ptrdiff_t last_user_;
  Prompt prompt_;
};

// Whether an assistant message has nothing to write: clients send such a one at the end.
bool is_empty_turn(const Message& message) {
  return message.role == Role::kAssistant && message.content.empty() &&
         message.tool_calls.empty() && message.reasoning.value_or("").empty() &&
         message.task == Task::kNone;
}

Status check_open_turns(std::span<const Message> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].without_eos && messages[i].role != Role::kAssistant) {
      return invalid_argument("messages[{}]: only an assistant message can be continued", i);
    }
  }
  return ok_status();
}

}  // namespace

std::string Prompt::text() const {
  std::string out;
  for (const PromptPart& part : parts) {
    out += part.text;
  }
  return out;
}

Result<Prompt> render_chat(std::span<const Message> messages, const ChatOptions& options,
                           std::span<const Message> context) {
  TANDEM_TRY(check_open_turns(messages));
  while (options.always_open_turn && !messages.empty() && is_empty_turn(messages.back())) {
    messages = messages.first(messages.size() - 1);
  }
  if (options.always_open_turn && messages.empty()) {
    return invalid_argument("messages is empty, expected at least one message with some content");
  }
  std::vector<Turn> turns = merge_turns(context);
  std::size_t first = turns.size();
  for (Turn& turn : merge_turns(messages)) {
    turns.push_back(std::move(turn));
  }
  sort_results(turns);
  const bool has_tools = std::any_of(turns.begin(), turns.end(),
                                     [](const Turn& turn) { return !turn.message.tools.empty(); });
  const bool drop = options.drop_thinking && !has_tools;
  if (options.mode == ThinkingMode::kThinking && drop) {
    std::vector<Turn> before(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(first));
    first = drop_developers(std::move(before)).size();
    turns = drop_developers(std::move(turns));
  }
  return Renderer(options, std::move(turns), drop).render(first, context.empty());
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt) {
  std::vector<TextPart> parts;
  parts.reserve(prompt.parts.size());
  for (const PromptPart& part : prompt.parts) {
    parts.push_back({part.text, part.trusted});
  }
  return tokenizer.encode_parts(parts);
}

void attach_tools(std::vector<Message>& messages, std::vector<json::Value> tools,
                  std::optional<json::Value> response_format) {
  if (tools.empty() && !response_format) {
    return;
  }
  auto place = std::find_if(messages.begin(), messages.end(), [](const Message& message) {
    return message.role == Role::kSystem || message.role == Role::kDeveloper;
  });
  if (place == messages.end()) {
    Message system;
    system.role = Role::kSystem;
    place = messages.insert(messages.begin(), std::move(system));
  }
  place->tools = std::move(tools);
  place->response_format = std::move(response_format);
}

}  // namespace tandem::text
