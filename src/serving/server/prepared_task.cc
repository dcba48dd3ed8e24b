#include "serving/server/prepared_task.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::server {
namespace {

using protocol::GenerationTask;

// What the prompt shows of the tools: nothing if none may be called (field-cases B-09).
std::vector<json::Value> definitions(const GenerationTask& task) {
  std::vector<json::Value> all;
  if (task.tool_choice.mode == grammar::ToolChoiceMode::kNone) {
    return all;
  }
  for (const protocol::Tool& tool : task.tools) {
    all.push_back(tool.definition);
  }
  return all;
}

// Parameters whose schema type is string, so that their values are never taken for JSON.
void add_string_parameters(const protocol::Tool& tool, text::StreamOptions& options) {
  const json::Value* properties = json::find(tool.spec.parameters, "properties");
  if (properties == nullptr || !properties->is_object()) {
    return;
  }
  for (const auto& member : properties->get_object()) {
    const json::Value* type = json::find(member.value(), "type");
    if (type != nullptr && type->is_string() && type->get_string() == "string") {
      options.string_parameters.emplace(tool.spec.name, std::string(member.key()));
    }
  }
}

text::StreamOptions stream_options(const GenerationTask& task, bool starts_in_reasoning) {
  text::StreamOptions options;
  options.starts_in_reasoning = starts_in_reasoning;
  options.parse_tools =
      !task.tools.empty() && task.tool_choice.mode != grammar::ToolChoiceMode::kNone;
  options.stop = task.stop;
  options.include_stop = task.include_stop;
  for (const protocol::Tool& tool : task.tools) {
    options.tool_names.insert(tool.spec.name);
    add_string_parameters(tool, options);
  }
  return options;
}

protocol::ApiError too_long(std::size_t prompt_tokens, std::int64_t context) {
  protocol::ApiError error;
  error.code = "context_length_exceeded";
  error.message = fmt::format(
      "the prompt has {} tokens and the context of this server {}, which must also hold the "
      "answer; shorten the conversation",
      prompt_tokens, context);
  return error;
}

// The messages without the turns between the system messages at the front and `first`.
std::vector<text::Message> without_turns(const std::vector<text::Message>& messages,
                                         std::size_t first) {
  std::vector<text::Message> kept;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool leads = i == kept.size() && messages[i].role == text::Role::kSystem;
    if (leads || i >= first) {
      kept.push_back(messages[i]);
    }
  }
  return kept;
}

// Where a conversation may begin: its user turns. A call is thus never parted from its result.
std::vector<std::size_t> user_turns(const std::vector<text::Message>& messages) {
  std::vector<std::size_t> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == text::Role::kUser) {
      turns.push_back(i);
    }
  }
  return turns;
}

}  // namespace

protocol::Parsed<RenderedPrompt> render_prompt(const GenerationTask& task,
                                               const PrepareParts& parts) {
  RenderedPrompt out;
  if (const auto* raw = std::get_if<protocol::RawPrompt>(&task.prompt)) {
    const auto* text = std::get_if<std::string>(raw);
    if (text == nullptr) {
      out.tokens = std::get<std::vector<TokenId>>(*raw);
      return out;
    }
    text::EncodeOptions options;
    options.allow_added_tokens = true;  // whoever sends raw prompts writes the marks
    out.tokens = parts.tokenizer.encode(*text, options);
    if (out.tokens.empty() || out.tokens.front() != parts.tokenizer.special().bos) {
      out.tokens.insert(out.tokens.begin(), parts.tokenizer.special().bos);
    }
    return out;
  }
  const auto& chat = std::get<protocol::ChatPrompt>(task.prompt);
  std::vector<text::Message> messages = chat.messages;
  text::attach_tools(messages, definitions(task), std::nullopt);
  text::ChatOptions options;
  options.format = parts.model.format;
  options.mode = chat.mode.value_or(parts.model.mode);
  options.effort = chat.effort.value_or(parts.model.effort);
  const auto prompt = text::render_chat(messages, options);
  if (!prompt.ok()) {
    return protocol::to_api_error(prompt.status(), "messages");
  }
  out.tokens = text::encode_prompt(parts.tokenizer, *prompt);
  out.starts_in_reasoning = prompt->starts_in_reasoning;
  return out;
}

namespace {

// Renders the task; if it asks for that, without as many of its oldest turns as must go for the
// prompt to fit, which changes the task.
protocol::Parsed<RenderedPrompt> render_fitting(GenerationTask& task, const PrepareParts& parts) {
  auto rendered = render_prompt(task, parts);
  auto* chat = std::get_if<protocol::ChatPrompt>(&task.prompt);
  const auto fits = [&] {
    return static_cast<std::int64_t>(rendered->tokens.size()) < parts.model.max_context_tokens;
  };
  if (!rendered.ok() || !task.drop_oldest || chat == nullptr || fits()) {
    return rendered;
  }
  const std::vector<text::Message> all = chat->messages;
  const std::vector<std::size_t> turns = user_turns(all);
  // The fewest turns that must go: more of them never make a longer prompt.
  std::size_t low = 1;
  std::size_t high = turns.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    chat->messages = without_turns(all, turns[middle]);
    rendered = render_prompt(task, parts);
    if (!rendered.ok()) {
      return rendered;
    }
    if (fits()) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (!turns.empty()) {
    chat->messages = without_turns(all, turns[std::min(low, turns.size() - 1)]);
  }
  return render_prompt(task, parts);
}

}  // namespace

protocol::Parsed<PreparedTask> prepare_task(GenerationTask task, const PrepareParts& parts) {
  auto rendered = render_fitting(task, parts);
  if (!rendered.ok()) {
    return rendered.error();
  }
  PreparedTask out;
  out.prompt = std::move(rendered->tokens);
  const auto n_prompt = static_cast<std::int64_t>(out.prompt.size());
  if (n_prompt >= parts.model.max_context_tokens) {
    return too_long(out.prompt.size(), parts.model.max_context_tokens);
  }
  auto compiled = parts.constraints.make(task);
  if (!compiled.ok()) {
    return compiled.error();
  }
  out.grammar = std::move(compiled->grammar);
  out.ignored_keywords = std::move(compiled->ignored);
  const std::int64_t room = parts.model.max_context_tokens - n_prompt;
  out.max_tokens = task.max_tokens < 0 ? room : std::min(task.max_tokens, room);
  out.stream = stream_options(task, rendered->starts_in_reasoning);
  out.task = std::move(task);
  return out;
}

runtime::GenerationRequest engine_request(const PreparedTask& prepared, int index,
                                          const std::string& request_id,
                                          const PrepareParts& parts) {
  const GenerationTask& task = prepared.task;
  runtime::GenerationRequest request;
  request.request_id = request_id;
  request.prompt = prepared.prompt;
  request.sampling = task.sampling;
  if (request.sampling.seed) {
    *request.sampling.seed += static_cast<std::uint64_t>(index);  // api.md 3.7: seed + i
  }
  request.max_tokens = prepared.max_tokens;
  request.stop_tokens = {parts.tokenizer.special().eos};
  request.ignore_eos = task.ignore_eos;
  request.speculate = task.speculate;
  request.thinking.starts_in_thinking = prepared.stream.starts_in_reasoning;
  const std::optional<int> budget =
      task.thinking_budget ? task.thinking_budget : parts.model.thinking_budget;
  request.thinking.max_tokens = budget.value_or(-1);
  if (prepared.grammar) {
    request.constraint =
        grammar::make_constraint(prepared.grammar, {prepared.stream.starts_in_reasoning});
  }
  return request;
}

}  // namespace tandem::server
