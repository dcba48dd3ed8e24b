#include "serving/protocol/messages_request.h"

#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "serving/protocol/messages_content.h"
#include "serving/protocol/openai_fields.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {
namespace {

constexpr std::int64_t kMaxTokens = std::numeric_limits<std::int32_t>::max();

// {"type": "enabled", "budget_tokens"}, "adaptive" or "disabled"; off if absent. An effort without
// thinking changes nothing (C-09: disabled wins).
void read_thinking(const Fields& body, GenerationTask& task, ChatPrompt& prompt) {
  prompt.mode = text::ThinkingMode::kChat;
  const std::optional<Fields> thinking = body.object("thinking");
  const std::string type =
      thinking ? thinking->word("type", {"enabled", "adaptive", "disabled"}).value_or("disabled")
               : "disabled";
  const std::optional<Fields> output = body.object("output_config");
  const std::optional<std::string> effort = output ? output->text("effort") : std::nullopt;
  std::optional<Thinking> wanted;
  if (effort) {
    wanted = thinking_of_effort(*effort);
    if (!wanted) {
      output->fail("effort",
                   fmt::format("is '{}', expected one of: low, medium, high, xhigh, max", *effort));
    }
  }
  if (type == "disabled") {
    return;
  }
  prompt.mode = wanted ? wanted->mode : text::ThinkingMode::kThinking;
  prompt.effort = wanted ? wanted->effort : std::nullopt;
  if (const auto budget = thinking->integer("budget_tokens", 0, kMaxTokens)) {
    task.thinking_budget = static_cast<int>(*budget);
  }
}

// Tools without a schema are run by the service, not by the client: they are left out.
void read_tools(const Fields& body, GenerationTask& task) {
  std::set<std::string> names;
  body.each_object("tools", [&](const Fields& tool) {
    const std::string type = tool.text("type").value_or("custom");
    if (tool.find("input_schema") == nullptr && type != "custom") {
      return;
    }
    const std::string name = tool.required_text("name");
    tool.object("input_schema");
    if (!names.insert(name).second) {
      tool.fail("name", fmt::format("is '{}', which another tool has already; names of tools must "
                                    "differ",
                                    name));
    }
    task.tools.push_back(make_tool(name, tool.text("description"), tool.find("input_schema"),
                                   tool.boolean("strict").value_or(false)));
  });
  ToolChoiceFields choice;
  const std::optional<Fields> wanted = body.object("tool_choice");
  if (wanted) {
    const std::string type = wanted->word("type", {"auto", "any", "tool", "none"}).value_or("auto");
    using Mode = grammar::ToolChoiceMode;
    choice.choice.mode = type == "any"    ? Mode::kRequired
                         : type == "tool" ? Mode::kNamed
                         : type == "none" ? Mode::kNone
                                          : Mode::kAuto;
    if (type == "tool") {
      choice.choice.name = wanted->required_text("name");
    }
    task.parallel_tool_calls = !wanted->boolean("disable_parallel_tool_use").value_or(false);
  }
  apply_tool_choice(choice, "tool_choice", task, body.errors());
}

void read_sampling(const Fields& body, GenerationTask& task, MessagesUse use) {
  const std::optional<std::int64_t> max_tokens = body.integer("max_tokens", 1, kMaxTokens);
  if (!max_tokens && use == MessagesUse::kGenerate && body.errors().ok()) {
    body.fail("max_tokens", "is missing, expected the most tokens to generate");
  }
  task.max_tokens = max_tokens.value_or(-1);
  sampling::SamplingParams& sampling = task.sampling;
  if (const auto temperature = body.number("temperature", {0, 2})) {
    sampling.temperature = static_cast<float>(*temperature);
  }
  if (const auto top_p = body.number("top_p", {0, 1})) {
    sampling.top_p = *top_p > 0 ? static_cast<float>(*top_p) : std::numeric_limits<float>::min();
  }
  if (const auto top_k = body.integer("top_k", 0, kMaxTokens)) {
    sampling.top_k = static_cast<int>(*top_k);
  }
  for (std::string& stop : body.texts("stop_sequences").value_or(std::vector<std::string>())) {
    if (!stop.empty()) {
      task.stop.push_back(std::move(stop));
    }
  }
}

// output_config.format or output_format: a JSON Schema for the answer.
void read_format(const Fields& body, ReplyFormat& format) {
  const std::optional<Fields> output = body.object("output_config");
  std::optional<Fields> wanted = output ? output->object("format") : std::nullopt;
  wanted = wanted ? wanted : body.object("output_format");
  if (!wanted || wanted->word("type", {"json_schema"}) == std::nullopt) {
    return;
  }
  if (!wanted->object("schema") && wanted->errors().ok()) {
    wanted->fail("schema", "is missing, expected a JSON Schema object");
    return;
  }
  format.kind = ReplyFormat::Kind::kJsonSchema;
  format.strict = true;
  format.param = wanted->path();
  const json::Value* schema = wanted->find("schema");
  format.schema = schema == nullptr ? json::Value() : *schema;
}

// An assistant turn at the end is a beginning that the model continues.
void mark_prefill(std::vector<text::Message>& messages) {
  if (!messages.empty() && messages.back().role == text::Role::kAssistant &&
      messages.back().tool_calls.empty() && !messages.back().content.empty()) {
    messages.back().without_eos = true;
  }
}

void read_conversation(const Fields& body, ChatPrompt& prompt) {
  ConversationBuilder conversation;
  std::string system = system_text(body);
  if (!system.empty()) {
    text::Message message;
    message.role = text::Role::kSystem;
    message.content = std::move(system);
    conversation.message(std::move(message));
  }
  const json::Array* messages = body.array("messages");
  if ((messages == nullptr || messages->empty()) && body.errors().ok()) {
    body.fail("messages", "is missing or empty, expected a list of messages");
  }
  body.each_object("messages",
                   [&conversation](const Fields& message) { read_message(message, conversation); });
  prompt.messages = conversation.take();
  mark_prefill(prompt.messages);
}

}  // namespace

Parsed<GenerationTask> parse_messages_request(const json::Value& body, MessagesUse use) {
  if (!body.is_object()) {
    return bad_field("",
                     fmt::format("the body is {}, expected a JSON object", json::type_name(body)));
  }
  FieldErrors errors;
  const Fields fields(body.get_object(), "", errors);
  GenerationTask task;
  ChatPrompt prompt;
  task.model = fields.required_text("model");
  task.stream = fields.boolean("stream").value_or(false);
  read_sampling(fields, task, use);
  read_thinking(fields, task, prompt);
  read_tools(fields, task);
  read_format(fields, task.format);
  read_conversation(fields, prompt);
  if (!errors.ok()) {
    return errors.error();
  }
  task.prompt = std::move(prompt);
  return task;
}

}  // namespace tandem::protocol
