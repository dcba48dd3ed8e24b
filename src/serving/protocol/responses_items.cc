#include "serving/protocol/responses_items.h"

#include <algorithm>
#include <array>
#include <utility>

#include "serving/protocol/opaque_text.h"
#include "serving/protocol/responses_tools.h"

namespace tandem::protocol {
namespace {

// Traces of tools that the service itself ran: nothing in them is for the model.
constexpr std::array<std::string_view, 8> kSilentItems = {
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "computer_call",   "mcp_list_tools",   "mcp_approval_request",  "mcp_approval_response"};

bool is_silent(std::string_view type) {
  return std::find(kSilentItems.begin(), kSilentItems.end(), type) != kSilentItems.end();
}

std::string_view id_prefix(std::string_view type) {
  if (type == "message") {
    return "msg_";
  }
  if (type == "reasoning") {
    return "rs_";
  }
  if (type == "function_call") {
    return "fc_";
  }
  if (type == "custom_tool_call") {
    return "ctc_";
  }
  if (type == "compaction") {
    return "cmp_";
  }
  return type == "custom_tool_call_output" ? "ctco_" : "fco_";
}

std::string type_of(const Fields& item) {
  const std::optional<std::string> type = item.text("type");
  return type ? *type : (item.find("role") != nullptr ? "message" : "");
}

// The kind of a part that is no text, as the prompt names it: "image" of "input_image".
std::string media_kind(std::string_view type) {
  constexpr std::string_view kPrefix = "input_";
  return std::string(type.substr(0, kPrefix.size()) == kPrefix ? type.substr(kPrefix.size())
                                                               : type);
}

// Parts of a content list; parts that are no text keep only their kind.
std::vector<text::ContentPart> read_parts(const Fields& item, std::string_view key) {
  std::vector<text::ContentPart> parts;
  const json::Value* value = item.find(key);
  if (value != nullptr && value->is_string()) {
    parts.push_back({"text", std::string(value->get_string())});
    return parts;
  }
  item.each_object(key, [&parts](const Fields& part) {
    const std::string type = part.text("type").value_or("text");
    if (type == "refusal") {
      parts.push_back({"text", part.required_text("refusal")});
    } else if (type == "input_text" || type == "output_text" || type == "text" ||
               type == "summary_text" || type == "reasoning_text") {
      parts.push_back({"text", part.required_text("text")});
    } else if (type == "input_image" || type == "input_file" || type == "input_audio" ||
               type == "input_video" || type == "image_url") {
      parts.push_back({media_kind(type), {}});
    } else {
      part.fail("type",
                fmt::format("is '{}', which is no content part that this server knows", type));
    }
  });
  return parts;
}

std::string joined(const std::vector<text::ContentPart>& parts, std::string_view separator) {
  std::string out;
  for (const text::ContentPart& part : parts) {
    out += out.empty() ? std::string_view() : separator;
    out += part.text;
  }
  return out;
}

// The model reads text only; that a picture was sent is not hidden from the client.
void refuse_media(const Fields& item, const std::vector<text::ContentPart>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].type != "text") {
      item.fail(fmt::format("content[{}]", i),
                fmt::format("is of kind '{}', but this model reads text only", parts[i].type));
    }
  }
}

json::Array normal_content(const json::Value* content, bool is_assistant) {
  if (content != nullptr && content->is_array()) {
    return content->get_array();
  }
  json::Object part{{"type", is_assistant ? "output_text" : "input_text"},
                    {"text", content == nullptr ? json::Value("") : *content}};
  if (is_assistant) {
    part["annotations"] = json::Array();
  }
  return {std::move(part)};
}

}  // namespace

void ItemReader::read_history(const json::Array& items, FieldErrors& errors) {
  for (std::size_t i = 0; i < items.size() && errors.ok(); ++i) {
    if (items[i].is_object()) {
      read(Fields(items[i].get_object(), fmt::format("previous_response_id.items[{}]", i), errors));
    }
  }
}

json::Array ItemReader::read_input(const Fields& body) {
  json::Array normal;
  const json::Value* input = body.find("input");
  if (input != nullptr && input->is_string()) {
    const json::Object item{{"role", "user"}, {"content", *input}};
    const Fields fields(item, "input", body.errors());
    read(fields);
    normal.push_back(normal_form(fields));
    return normal;
  }
  body.each_object("input", [this, &normal](const Fields& item) {
    if (type_of(item) == "item_reference") {
      const std::optional<json::Value> found = referenced(item);
      if (found) {
        read(Fields(found->get_object(), item.path(), item.errors()));
        normal.push_back(*found);
      }
      return;
    }
    read(item);
    normal.push_back(normal_form(item));
  });
  return normal;
}

std::optional<json::Value> ItemReader::referenced(const Fields& item) {
  const std::string id = item.required_text("id");
  std::optional<json::Value> found = lookup_.item(id);
  if (!found || !found->is_object()) {
    item.fail("id", fmt::format("is '{}', but no stored item has this id (it may have expired, or "
                                "its response had store: false)",
                                id));
    return std::nullopt;
  }
  return found;
}

void ItemReader::read(const Fields& item) {
  const std::string type = type_of(item);
  if (type == "message") {
    message(item);
  } else if (type == "reasoning") {
    reasoning(item);
  } else if (type == "function_call" || type == "custom_tool_call") {
    call(item, type == "custom_tool_call");
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    result(item);
  } else if (type == "compaction") {
    compaction(item);
  } else if (!is_silent(type)) {
    item.fail("type",
              type.empty()
                  ? std::string("is missing, and the item has no role")
                  : fmt::format("is '{}', which is no input item that this server knows", type));
  }
}

void ItemReader::message(const Fields& item) {
  const std::string role =
      item.word("role", {"user", "assistant", "system", "developer"}).value_or("user");
  const std::vector<text::ContentPart> parts = read_parts(item, "content");
  refuse_media(item, parts);
  if (role == "assistant") {
    conversation_.assistant_text(joined(parts, ""), "\n\n");
    return;
  }
  text::Message message;
  message.role = role == "user" ? text::Role::kUser : text::Role::kSystem;
  if (role == "user" && parts.size() > 1) {
    for (const text::ContentPart& part : parts) {
      text::ContentBlock block;
      block.text = part.text;
      message.blocks.push_back(std::move(block));
    }
  } else {
    message.content = joined(parts, "\n\n");
  }
  conversation_.message(std::move(message));
}

// What we sent ourselves comes first: the text, or our own opaque form of it. A foreign opaque form
// without anything readable is left out.
void ItemReader::reasoning(const Fields& item) {
  std::string text = joined(read_parts(item, "content"), "\n");
  if (text.empty()) {
    const std::optional<std::string> opaque = item.text("encrypted_content");
    text = opaque ? unwrap_opaque(*opaque).value_or("") : "";
  }
  if (text.empty()) {
    text = joined(read_parts(item, "summary"), "\n");
  }
  if (!text.empty()) {
    conversation_.reasoning(text);
  }
}

void ItemReader::call(const Fields& item, bool is_custom) {
  if (item.text("status").value_or("completed") == "incomplete") {
    return;  // cut off by a limit: no call was made
  }
  text::ToolCall call;
  call.id = item.required_text("call_id");
  call.name = item.required_text("name");
  const std::optional<std::string> name_space = item.text("namespace");
  if (name_space && !name_space->empty()) {
    call.name = namespaced_name(*name_space, call.name);
  }
  if (is_custom) {
    call.arguments = json::Object{{kCustomToolInput, item.required_text("input")}};
  } else if (const json::Value* arguments = item.find("arguments")) {
    call.arguments = *arguments;  // a string or an object (A10)
  }
  conversation_.call(std::move(call));
}

void ItemReader::result(const Fields& item) {
  text::Message result;
  result.role = text::Role::kTool;
  result.tool_call_id = item.required_text("call_id");
  const json::Value* output = item.find("output");
  if (output != nullptr && output->is_array()) {
    result.parts = read_parts(item, "output");
  } else if (output != nullptr) {
    result.content = output->is_string() ? std::string(output->get_string()) : json::dump(*output);
  }
  if (item.errors().ok() && !conversation_.knows_call(result.tool_call_id)) {
    item.fail("call_id", fmt::format("is '{}', but the conversation has no call with this id",
                                     result.tool_call_id));
    return;
  }
  conversation_.result(std::move(result));
}

void ItemReader::compaction(const Fields& item) {
  const std::string opaque = item.required_text("encrypted_content");
  const std::optional<std::string> summary = unwrap_opaque(opaque);
  if (!summary) {
    item.fail("encrypted_content", "was not made by this server; compact the conversation here");
    return;
  }
  text::Message message;
  message.role = text::Role::kSystem;
  message.content = "Summary of the conversation so far:\n" + *summary;
  conversation_.message(std::move(message));
}

// The form under which an item is stored and listed: with type, id and, for messages, parts.
json::Value ItemReader::normal_form(const Fields& item) {
  json::Object out;
  const std::string type = type_of(item);
  const std::optional<std::string> id = item.text("id");
  out["id"] = id && !id->empty() ? *id : ids_.make(id_prefix(type));
  out["type"] = type;
  for (const auto& member : item.json()) {
    if (!out.contains(member.key())) {
      out[member.key()] = member.value();
    }
  }
  if (type == "message") {
    const bool is_assistant = item.text("role").value_or("") == "assistant";
    out["content"] = normal_content(item.find("content"), is_assistant);
  }
  if (type != "reasoning" && type != "compaction" && !out.contains("status")) {
    out["status"] = "completed";
  }
  return out;
}

}  // namespace tandem::protocol
