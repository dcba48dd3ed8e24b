#include "serving/protocol/responses_request.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "serving/protocol/openai_fields.h"

namespace tandem::protocol {
namespace {

constexpr std::int64_t kMaxOutputTokens = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kIncludeReasoning = "reasoning.encrypted_content";
constexpr std::string_view kIncludeLogprobs = "message.output_text.logprobs";

// Parts of outputs that this server never has: asking for them changes nothing.
constexpr std::array<std::string_view, 6> kEmptyIncludes = {"web_search_call.action.sources",
                                                            "web_search_call.results",
                                                            "file_search_call.results",
                                                            "code_interpreter_call.outputs",
                                                            "computer_call_output.output.image_url",
                                                            "message.input_image.image_url"};

void read_include(const Fields& body, ResponsesRequest& request) {
  const std::vector<std::string> include =
      body.texts("include").value_or(std::vector<std::string>());
  for (std::size_t i = 0; i < include.size(); ++i) {
    if (include[i] == kIncludeReasoning) {
      request.settings.encrypted_reasoning = true;
    } else if (include[i] == kIncludeLogprobs) {
      request.settings.logprobs = true;
      request.task.sampling.n_logprobs = std::max(request.task.sampling.n_logprobs, 0);
    } else if (std::find(kEmptyIncludes.begin(), kEmptyIncludes.end(), include[i]) ==
               kEmptyIncludes.end()) {
      body.fail("include", fmt::format("has '{}', expected one of: {}, {}", include[i],
                                       kIncludeReasoning, kIncludeLogprobs));
    }
  }
}

void read_sampling(const Fields& body, ResponsesRequest& request) {
  sampling::SamplingParams& sampling = request.task.sampling;
  json::Object& echo = request.settings.echo;
  const auto number = [&body, &echo](std::string_view key, NumberRange range, float& value) {
    const std::optional<double> given = body.number(key, range);
    value = given ? static_cast<float>(*given) : value;
    echo[key] = given.value_or(static_cast<double>(value));
  };
  number("temperature", {0, 2}, sampling.temperature);
  number("top_p", {0, 1}, sampling.top_p);
  number("presence_penalty", {-2, 2}, sampling.presence_penalty);
  number("frequency_penalty", {-2, 2}, sampling.frequency_penalty);
  if (sampling.top_p == 0.0F) {
    sampling.top_p = std::numeric_limits<float>::min();  // only the best token
  }
  const std::int64_t top_logprobs = body.integer("top_logprobs", 0, 20).value_or(0);
  echo["top_logprobs"] = top_logprobs;
  if (top_logprobs > 0) {
    request.settings.logprobs = true;
    sampling.n_logprobs = static_cast<int>(top_logprobs);
  }
}

// Limits: at least 1 token, though OpenAI says 16, since probes ask for one (api.md 3.3).
void read_limits(const Fields& body, ResponsesRequest& request) {
  json::Object& echo = request.settings.echo;
  const std::optional<std::int64_t> limit = body.integer("max_output_tokens", 1, kMaxOutputTokens);
  request.task.max_tokens = limit.value_or(-1);
  echo["max_output_tokens"] = limit ? json::Value(*limit) : json::Value();
  const std::optional<std::int64_t> calls = body.integer("max_tool_calls", 1, kMaxOutputTokens);
  echo["max_tool_calls"] = calls ? json::Value(*calls) : json::Value();
  const std::optional<std::int64_t> budget =
      body.integer("thinking_token_budget", 0, kMaxOutputTokens);
  if (budget) {
    request.task.thinking_budget = static_cast<int>(*budget);
  }
  const std::string truncation = body.word("truncation", {"auto", "disabled"}).value_or("disabled");
  request.task.drop_oldest = truncation == "auto";
  echo["truncation"] = truncation;
}

void read_reasoning(const Fields& body, ChatPrompt& prompt, json::Object& echo) {
  const std::optional<Fields> reasoning = body.object("reasoning");
  json::Object said{{"effort", nullptr}, {"summary", nullptr}};
  if (reasoning) {
    if (const auto effort = reasoning->text("effort")) {
      const std::optional<Thinking> thinking = thinking_of_effort(*effort);
      if (!thinking) {
        reasoning->fail("effort", fmt::format("is '{}', expected one of: none, minimal, low, "
                                              "medium, high, xhigh, max",
                                              *effort));
        return;
      }
      prompt.mode = thinking->mode;
      prompt.effort = thinking->effort;
      said["effort"] = *effort;
    }
    if (const auto summary = reasoning->text("summary")) {
      said["summary"] = *summary;
    }
  }
  echo["reasoning"] = std::move(said);
}

// text.format: flat, or with the nested "json_schema" of chat completions.
void read_format(const Fields& body, ReplyFormat& format, json::Object& echo) {
  json::Object said{{"format", json::Object{{"type", "text"}}}};
  const std::optional<Fields> text = body.object("text");
  const std::optional<Fields> wanted = text ? text->object("format") : std::nullopt;
  if (wanted) {
    const std::string type =
        wanted->word("type", {"text", "json_object", "json_schema"}).value_or("text");
    said["format"] = json::Object{{"type", type}};
    format.param = wanted->path();
    if (type == "json_object") {
      format.kind = ReplyFormat::Kind::kJsonObject;
    } else if (type == "json_schema") {
      const Fields fields = wanted->object("json_schema").value_or(*wanted);
      format.kind = ReplyFormat::Kind::kJsonSchema;
      format.strict = fields.boolean("strict").value_or(false);
      if (!fields.object("schema") && fields.errors().ok()) {
        fields.fail("schema", "is missing, expected a JSON Schema object");
        return;
      }
      const json::Value* schema = fields.find("schema");
      format.schema = schema == nullptr ? json::Value() : *schema;
      const json::Value* description = fields.find("description");
      said["format"] = json::Object{{"type", type},
                                    {"name", fields.text("name").value_or("reply")},
                                    {"description", description ? *description : json::Value()},
                                    {"schema", format.schema},
                                    {"strict", format.strict}};
    }
  }
  if (const auto verbosity = text ? text->text("verbosity") : std::nullopt) {
    said["verbosity"] = *verbosity;
  }
  echo["text"] = std::move(said);
}

json::Value echo_of_choice(const Fields& body) {
  const json::Value* choice = body.find("tool_choice");
  if (choice == nullptr) {
    return "auto";
  }
  if (const json::Value* function = json::find(*choice, "function")) {  // the chat form
    if (const json::Value* name = json::find(*function, "name")) {
      return json::Object{{"type", "function"}, {"name", *name}};
    }
  }
  return *choice;
}

// The model's name of a tool that the client names as it knows it.
std::string model_name(const std::map<std::string, ToolOrigin>& origins, const std::string& name) {
  for (const auto& [model_name, origin] : origins) {
    if (model_name != name && origin.name == name && origins.count(name) == 0) {
      return model_name;
    }
  }
  return name;
}

void read_tools(const Fields& body, ResponsesRequest& request) {
  ResponsesTools tools = parse_responses_tools(body);
  GenerationTask& task = request.task;
  task.tools = std::move(tools.tools);
  request.settings.tool_origins = std::move(tools.origins);
  request.settings.echo["tools"] = std::move(tools.echo);
  ToolChoiceFields choice = parse_tool_choice(body, "tool_choice");
  choice.choice.name = model_name(request.settings.tool_origins, choice.choice.name);
  for (std::string& name : choice.allowed ? *choice.allowed : std::vector<std::string>()) {
    name = model_name(request.settings.tool_origins, name);
  }
  apply_tool_choice(choice, "tool_choice", task, body.errors());
  request.settings.echo["tool_choice"] = echo_of_choice(body);
  task.parallel_tool_calls = body.boolean("parallel_tool_calls").value_or(true);
  request.settings.echo["parallel_tool_calls"] = task.parallel_tool_calls;
}

// Members that this server repeats and does not act on, and members that it must refuse.
void read_the_rest(const Fields& body, ResponsesRequest& request) {
  json::Object& echo = request.settings.echo;
  request.task.model = body.text("model").value_or("");
  request.task.stream = body.boolean("stream").value_or(false);
  request.settings.store = body.boolean("store").value_or(true);
  echo["store"] = request.settings.store;
  if (body.boolean("background").value_or(false)) {
    body.fail("background",
              "is true, but this server answers while the client waits; leave it out "
              "and use 'stream' for long answers");
  }
  echo["background"] = false;
  echo["service_tier"] = "default";
  body.object("metadata");
  const json::Value* metadata = body.find("metadata");
  echo["metadata"] = metadata == nullptr ? json::Value(json::Object()) : *metadata;
  for (const std::string_view key : {"safety_identifier", "prompt_cache_key"}) {
    const std::optional<std::string> text = body.text(key);
    echo[key] = text ? json::Value(*text) : json::Value();
  }
  for (const std::string_view key : {"conversation", "prompt"}) {
    if (body.find(key) != nullptr) {
      body.fail(key, "is not supported; send the items in 'input' or use 'previous_response_id'");
    }
  }
}

void read_instructions(const Fields& body, ConversationBuilder& conversation, json::Object& echo) {
  const std::optional<std::string> instructions = body.text("instructions");
  echo["instructions"] = instructions ? json::Value(*instructions) : json::Value();
  if (instructions && !instructions->empty()) {
    text::Message message;
    message.role = text::Role::kSystem;
    message.content = *instructions;
    conversation.message(std::move(message));
  }
}

// The conversation: instructions of this request, then the chain of earlier responses, then the
// new items (api.md 3.3).
void read_conversation(const Fields& body, const ResponseLookup& lookup, IdSource& ids,
                       ResponsesRequest& request, ChatPrompt& prompt) {
  ConversationBuilder conversation;
  json::Object& echo = request.settings.echo;
  read_instructions(body, conversation, echo);
  ItemReader reader(conversation, ids, lookup);
  request.settings.previous_response_id = body.text("previous_response_id").value_or("");
  const std::string& previous = request.settings.previous_response_id;
  echo["previous_response_id"] = previous.empty() ? json::Value() : json::Value(previous);
  if (!previous.empty() && body.errors().ok()) {
    Parsed<json::Array> history = lookup.history(previous);
    if (!history.ok()) {
      body.errors().add(history.error());
      return;
    }
    request.history = *std::move(history);
    reader.read_history(request.history, body.errors());
  }
  request.input = reader.read_input(body);
  prompt.messages = conversation.take();
  if (prompt.messages.empty() && body.errors().ok()) {
    body.fail("input", "is missing or empty, expected a string or a list of items");
  }
}

}  // namespace

Parsed<ResponsesRequest> parse_responses_request(const json::Value& body,
                                                 const ResponseLookup& lookup, IdSource& ids) {
  if (!body.is_object()) {
    return bad_field("",
                     fmt::format("the body is {}, expected a JSON object", json::type_name(body)));
  }
  FieldErrors errors;
  const Fields fields(body.get_object(), "", errors);
  ResponsesRequest request;
  ChatPrompt prompt;
  read_the_rest(fields, request);
  read_include(fields, request);
  read_sampling(fields, request);
  read_limits(fields, request);
  read_reasoning(fields, prompt, request.settings.echo);
  read_format(fields, request.task.format, request.settings.echo);
  read_tools(fields, request);
  read_conversation(fields, lookup, ids, request, prompt);
  if (!errors.ok()) {
    return errors.error();
  }
  request.task.prompt = std::move(prompt);
  return request;
}

}  // namespace tandem::protocol
