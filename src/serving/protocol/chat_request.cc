#include "serving/protocol/chat_request.h"

#include <algorithm>

#include "serving/protocol/chat_fields.h"
#include "serving/protocol/openai_fields.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {
namespace {

constexpr int kMaxChoices = 128;
constexpr int kMaxTopLogprobs = 20;

std::string joined(const std::vector<text::ContentPart>& parts) {
  std::string all;
  for (const text::ContentPart& part : parts) {
    all += part.text;
  }
  return all;
}

// A string, nothing, or a list of text parts.
std::vector<text::ContentPart> parse_content(const Fields& message) {
  const json::Value* content = message.find("content");
  std::vector<text::ContentPart> parts;
  if (content == nullptr) {
    return parts;
  }
  if (content->is_string()) {
    parts.push_back({"text", std::string(content->get_string())});
    return parts;
  }
  message.each_object("content", [&parts](const Fields& part) {
    const std::string type = part.text("type").value_or("text");
    if (type == "text" || type == "input_text" || type == "output_text") {
      parts.push_back({"text", part.required_text("text")});
    } else if (type == "refusal") {
      parts.push_back({"text", part.required_text("refusal")});
    } else {
      part.fail("type",
                fmt::format("is '{}', which is not supported: this model reads text only", type));
    }
  });
  return parts;
}

// Arguments come as the text of an object, as an object, or empty.
json::Value parse_arguments(const Fields& function) {
  const json::Value* arguments = function.find("arguments");
  if (arguments == nullptr || (arguments->is_string() && arguments->get_string().find_first_not_of(
                                                             " \t\r\n") == json::String::npos)) {
    return json::Object{};
  }
  if (!arguments->is_string() && !arguments->is_object()) {
    function.fail("arguments", "must be a string or an object");
  }
  return *arguments;
}

void parse_calls(const Fields& message, text::Message& out) {
  message.each_object("tool_calls", [&out](const Fields& call) {
    const auto function = call.object("function");
    if (!function) {
      call.fail("function", "is missing");
      return;
    }
    text::ToolCall parsed;
    parsed.id = call.text("id").value_or("");
    parsed.name = function->required_text("name");
    parsed.arguments = parse_arguments(*function);
    out.tool_calls.push_back(std::move(parsed));
  });
}

text::Message parse_assistant(const Fields& message) {
  text::Message out;
  out.role = text::Role::kAssistant;
  out.content = joined(parse_content(message));
  auto reasoning = message.text("reasoning_content");
  out.reasoning = reasoning ? reasoning : message.text("reasoning");
  out.without_eos = message.boolean("prefix").value_or(false);
  parse_calls(message, out);
  return out;
}

text::Message parse_tool_result(const Fields& message) {
  text::Message out;
  out.role = text::Role::kTool;
  out.tool_call_id = message.text("tool_call_id").value_or(message.text("name").value_or(""));
  std::vector<text::ContentPart> parts = parse_content(message);
  if (parts.size() == 1) {
    out.content = std::move(parts.front().text);
  } else {
    out.parts = std::move(parts);
  }
  return out;
}

text::Message parse_message(const Fields& message) {
  const std::string role = message.required_text("role");
  if (role == "assistant") {
    return parse_assistant(message);
  }
  if (role == "tool" || role == "function") {
    return parse_tool_result(message);
  }
  text::Message out;
  out.content = joined(parse_content(message));
  if (role == "system" || role == "developer") {
    out.role = text::Role::kSystem;
  } else if (role != "user") {
    message.fail("role",
                 fmt::format("is '{}', expected system, developer, user, assistant or tool", role));
  }
  return out;
}

// The client wants the last assistant turn continued, not answered.
void apply_continuation(const Fields& body, std::vector<text::Message>& messages) {
  const bool goes_on = body.boolean("continue_final_message").value_or(false);
  if (!goes_on) {
    return;
  }
  if (body.boolean("add_generation_prompt").value_or(false)) {
    body.fail("continue_final_message", "excludes add_generation_prompt: set one of them");
  } else if (messages.empty() || messages.back().role != text::Role::kAssistant) {
    body.fail("continue_final_message", "needs a last message of the assistant");
  } else {
    messages.back().without_eos = true;
  }
}

void parse_tools(const Fields& body, GenerationTask& task) {
  body.each_object("tools", [&task](const Fields& tool) {
    if (auto parsed = parse_function_tool(tool)) {
      task.tools.push_back(std::move(*parsed));
    }
  });
  apply_tool_choice(parse_tool_choice(body, "tool_choice"), "tool_choice", task, body.errors());
  task.parallel_tool_calls = body.boolean("parallel_tool_calls").value_or(true);
}

void parse_logprobs(const Fields& body, ChatRequest& request) {
  request.settings.logprobs = body.boolean("logprobs").value_or(false);
  const auto best = body.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (best && !request.settings.logprobs) {
    body.fail("top_logprobs", "needs logprobs: true");
  }
  if (request.settings.logprobs) {
    request.task.sampling.n_logprobs = static_cast<int>(best.value_or(0));
  }
}

}  // namespace

std::vector<text::Message> parse_chat_messages(const Fields& body, std::string_view key) {
  std::vector<text::Message> messages;
  body.each_object(
      key, [&messages](const Fields& message) { messages.push_back(parse_message(message)); });
  if (messages.empty()) {
    body.fail(key, "needs at least one message");
  }
  return messages;
}

Parsed<ChatRequest> parse_chat_request(const json::Value& body) {
  if (!body.is_object()) {
    return bad_field("", "the body must be a JSON object");
  }
  FieldErrors errors;
  const Fields fields(body.get_object(), "", errors);
  ChatRequest request;
  GenerationTask& task = request.task;
  task.model = fields.text("model").value_or("");
  ChatPrompt prompt;
  prompt.messages = parse_chat_messages(fields, "messages");
  apply_continuation(fields, prompt.messages);
  parse_thinking(fields, prompt, task.thinking_budget);
  parse_tools(fields, task);
  task.format = parse_reply_format(fields);
  task.sampling = parse_sampling(fields);
  task.max_tokens = parse_max_tokens(fields);
  task.stop = parse_stop(fields);
  task.include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  task.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  task.speculate = fields.boolean("speculation").value_or(true);
  task.n = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  task.stream = fields.boolean("stream").value_or(false);
  if (const auto options = fields.object("stream_options")) {
    request.settings.include_usage = options->boolean("include_usage").value_or(false);
  }
  parse_logprobs(fields, request);
  task.prompt = std::move(prompt);
  if (!errors.ok()) {
    return errors.error();
  }
  return request;
}

}  // namespace tandem::protocol
