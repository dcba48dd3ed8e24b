#include "serving/protocol/messages_content.h"

#include <utility>
#include <vector>

namespace tandem::protocol {
namespace {

constexpr std::string_view kBillingMark = "x-anthropic-billing-header:";

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string without_billing_line(std::string text) {
  if (!starts_with(text, kBillingMark)) {
    return text;
  }
  const std::size_t end = text.find('\n');
  return end == std::string::npos ? std::string() : text.substr(end + 1);
}

// Calls `visit` with the type of each block; a string is one text block.
template <typename Visit>
void each_block(const Fields& fields, std::string_view key, Visit visit) {
  const json::Value* content = fields.find(key);
  if (content != nullptr && content->is_string()) {
    const json::Object block{{"type", "text"}, {"text", *content}};
    visit(std::string("text"), Fields(block, fields.path_of(key), fields.errors()));
    return;
  }
  fields.each_object(
      key, [&visit](const Fields& block) { visit(block.text("type").value_or("text"), block); });
}

// The text of a document block whose source is text; nullopt for files of other kinds.
std::optional<std::string> document_text(const Fields& block) {
  const std::optional<Fields> source = block.object("source");
  if (!source || source->text("type").value_or("") != "text") {
    return std::nullopt;
  }
  const std::optional<std::string> title = block.text("title");
  return (title ? *title + "\n" : "") + source->text("data").value_or("");
}

std::string search_result_text(const Fields& block) {
  std::string out = block.text("title").value_or("") + "\n" + block.text("source").value_or("");
  each_block(block, "content", [&out](const std::string&, const Fields& part) {
    out += "\n" + part.required_text("text");
  });
  return out;
}

void fail_media(const Fields& block, std::string_view type) {
  block.fail("type", fmt::format("is '{}', but this model reads text only", type));
}

void fail_unknown(const Fields& block, std::string_view type) {
  block.fail("type",
             fmt::format("is '{}', which is no content block that this server knows", type));
}

// Results of tools: what is no text is named to the model, since refusing it would end the agent's
// conversation for good.
text::Message tool_result(const Fields& block) {
  text::Message result;
  result.role = text::Role::kTool;
  result.tool_call_id = block.required_text("tool_use_id");
  block.boolean("is_error");
  const json::Value* content = block.find("content");
  if (content != nullptr && content->is_string()) {
    result.content = content->get_string();
    return result;
  }
  each_block(block, "content", [&result](const std::string& type, const Fields& part) {
    if (type == "text") {
      result.parts.push_back({"text", part.required_text("text")});
    } else if (type == "tool_reference") {
      result.parts.push_back({"text", "tool: " + part.required_text("tool_name")});
    } else {
      const std::optional<std::string> text =
          type == "document" ? document_text(part) : std::nullopt;
      result.parts.push_back(text ? text::ContentPart{"text", *text}
                                  : text::ContentPart{type, std::string()});
    }
  });
  return result;
}

void add_user_texts(std::vector<std::string> texts, ConversationBuilder& conversation) {
  if (texts.empty()) {
    return;
  }
  text::Message message;
  message.role = text::Role::kUser;
  if (texts.size() == 1) {
    message.content = std::move(texts.front());
  } else {
    for (std::string& text : texts) {
      text::ContentBlock block;
      block.text = std::move(text);
      message.blocks.push_back(std::move(block));
    }
  }
  conversation.message(std::move(message));
}

void read_user(const Fields& message, ConversationBuilder& conversation) {
  std::vector<std::string> texts;
  each_block(message, "content", [&](const std::string& type, const Fields& block) {
    if (type == "text") {
      texts.push_back(block.required_text("text"));
    } else if (type == "tool_result") {
      add_user_texts(std::exchange(texts, {}), conversation);
      text::Message result = tool_result(block);
      if (block.errors().ok() && !conversation.knows_call(result.tool_call_id)) {
        block.fail("tool_use_id", fmt::format("is '{}', but no earlier tool_use block has this id",
                                              result.tool_call_id));
        return;
      }
      conversation.result(std::move(result));
    } else if (type == "document") {
      const std::optional<std::string> text = document_text(block);
      if (text) {
        texts.push_back(*text);
      } else {
        fail_media(block, type);
      }
    } else if (type == "image" || type == "container_upload") {
      fail_media(block, type);
    } else if (type == "search_result") {
      texts.push_back(search_result_text(block));
    } else {
      fail_unknown(block, type);
    }
  });
  add_user_texts(std::move(texts), conversation);
}

bool is_server_trace(std::string_view type) {
  constexpr std::string_view kResult = "_tool_result";
  return type == "server_tool_use" || type == "mcp_tool_use" || type == "redacted_thinking" ||
         (type.size() > kResult.size() && type.substr(type.size() - kResult.size()) == kResult);
}

void read_assistant(const Fields& message, ConversationBuilder& conversation) {
  each_block(message, "content", [&](const std::string& type, const Fields& block) {
    if (type == "text") {
      conversation.assistant_text(block.required_text("text"));
    } else if (type == "thinking") {
      conversation.reasoning(block.text("thinking").value_or(""));
    } else if (type == "tool_use") {
      text::ToolCall call;
      call.id = block.required_text("id");
      call.name = block.required_text("name");
      if (const json::Value* input = block.find("input")) {
        call.arguments = *input;
      }
      conversation.call(std::move(call));
    } else if (!is_server_trace(type)) {
      fail_unknown(block, type);
    }
  });
}

void read_system(const Fields& message, ConversationBuilder& conversation) {
  text::Message out;
  out.role = text::Role::kSystem;
  each_block(message, "content", [&out](const std::string& type, const Fields& block) {
    if (type != "text") {
      fail_unknown(block, type);
      return;
    }
    out.content += out.content.empty() ? "" : "\n\n";
    out.content += block.required_text("text");
  });
  conversation.message(std::move(out));
}

}  // namespace

std::string system_text(const Fields& body) {
  std::string out;
  each_block(body, "system", [&out](const std::string& type, const Fields& block) {
    if (type != "text") {
      fail_unknown(block, type);
      return;
    }
    const std::string text = without_billing_line(block.required_text("text"));
    out += out.empty() || text.empty() ? "" : "\n\n";
    out += text;
  });
  return out;
}

void read_message(const Fields& message, ConversationBuilder& conversation) {
  const std::string role = message.required_text("role");
  if (!message.errors().ok()) {
    return;
  }
  if (message.find("content") == nullptr) {
    message.fail("content", "is missing, expected a string or a list of blocks");
  } else if (role == "user") {
    read_user(message, conversation);
  } else if (role == "assistant") {
    read_assistant(message, conversation);
  } else if (role == "system" || role == "developer") {
    read_system(message, conversation);
  } else {
    message.fail("role", fmt::format("is '{}', expected one of: user, assistant, system", role));
  }
}

}  // namespace tandem::protocol
