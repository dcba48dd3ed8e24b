#include "serving/protocol/chat_fields.h"

#include <algorithm>
#include <charconv>

#include "serving/protocol/openai_fields.h"

namespace tandem::protocol {
namespace {

constexpr int kMaxStopStrings = 16;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

float number_or(const Fields& body, std::string_view key, NumberRange range, float otherwise) {
  const auto value = body.number(key, range);
  return value ? static_cast<float>(*value) : otherwise;
}

void parse_logit_bias(const Fields& body, sampling::SamplingParams& params) {
  const auto bias = body.object("logit_bias");
  if (!bias) {
    return;
  }
  for (const auto& member : bias->json()) {
    const std::string_view key(member.key());
    TokenId token = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), token);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || token < 0) {
      bias->fail(key, "is no token id");
      return;
    }
    if (const auto value = bias->number(key, {-100, 100})) {
      params.logit_bias.emplace_back(token, static_cast<float>(*value));
    }
  }
}

void set_effort(const Fields& fields, std::string_view key, ChatPrompt& prompt) {
  const auto word = fields.text(key);
  if (!word) {
    return;
  }
  const auto thinking = thinking_of_effort(*word);
  if (!thinking) {
    fields.fail(key, "must be none, minimal, low, medium, high, xhigh or max");
    return;
  }
  prompt.mode = thinking->mode;
  if (thinking->effort) {
    prompt.effort = thinking->effort;
  }
}

void set_budget(const Fields& fields, std::string_view key, std::optional<int>& budget) {
  if (const auto tokens = fields.integer(key, -1, 1 << 30)) {
    budget = *tokens < 0 ? std::nullopt : std::optional<int>(static_cast<int>(*tokens));
  }
}

ReplyFormat schema_format(const json::Value& schema, bool strict, std::string param) {
  ReplyFormat format;
  format.kind = ReplyFormat::Kind::kJsonSchema;
  format.schema = schema;
  format.strict = strict;
  format.param = std::move(param);
  return format;
}

// A schema that clients send as an object or as the text of one.
std::optional<json::Value> schema_of(const Fields& fields, std::string_view key) {
  const json::Value* value = fields.find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    return *value;
  }
  const json::String& text = value->get_string();
  const auto parsed = json::parse(std::string_view(text.data(), text.size()));
  if (!parsed.ok()) {
    fields.fail(key, "is no JSON: " + parsed.status().message());
    return std::nullopt;
  }
  return *parsed;
}

std::string gbnf_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

ReplyFormat choice_format(const std::vector<std::string>& choices, std::string param) {
  ReplyFormat format;
  format.kind = ReplyFormat::Kind::kEbnf;
  format.source = "root ::= ";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    format.source += (i == 0 ? "" : " | ") + gbnf_quoted(choices[i]);
  }
  format.param = std::move(param);
  return format;
}

// vLLM's forms: flat with a prefix, or the members of one object without it.
std::optional<ReplyFormat> guided_format(const Fields& fields, const std::string& prefix) {
  if (const auto schema = schema_of(fields, prefix + "json")) {
    return schema_format(*schema, false, fields.path_of(prefix + "json"));
  }
  for (const auto& [key, kind] : {std::pair("regex", ReplyFormat::Kind::kRegex),
                                  std::pair("grammar", ReplyFormat::Kind::kEbnf)}) {
    if (const auto source = fields.text(prefix + key)) {
      ReplyFormat format;
      format.kind = kind;
      format.source = *source;
      format.param = fields.path_of(prefix + key);
      return format;
    }
  }
  const auto choices = fields.texts(prefix + "choice");
  if (choices && !choices->empty()) {
    return choice_format(*choices, fields.path_of(prefix + "choice"));
  }
  return std::nullopt;
}

ReplyFormat response_format(const Fields& fields) {
  ReplyFormat format;
  format.param = fields.path();
  const std::string type = fields.word("type", {"text", "json_object", "json_schema"}).value_or("");
  if (type.empty()) {
    fields.fail("type", "is missing");
  } else if (type == "json_object") {
    format.kind = ReplyFormat::Kind::kJsonObject;
  } else if (type == "json_schema") {
    const auto holder = fields.object("json_schema");
    const auto schema = holder ? schema_of(*holder, "schema") : std::nullopt;
    if (!schema) {
      fields.fail("json_schema", "must be an object with a member 'schema'");
    } else {
      return schema_format(*schema, holder->boolean("strict").value_or(false), fields.path());
    }
  }
  return format;
}

}  // namespace

sampling::SamplingParams parse_sampling(const Fields& body) {
  sampling::SamplingParams params;
  params.temperature = number_or(body, "temperature", {0, 100}, 1.0F);
  params.top_p = number_or(body, "top_p", {0, 1}, 1.0F);
  params.min_p = number_or(body, "min_p", {0, 1}, 0.0F);
  params.presence_penalty = number_or(body, "presence_penalty", {-2, 2}, 0.0F);
  params.frequency_penalty = number_or(body, "frequency_penalty", {-2, 2}, 0.0F);
  params.repetition_penalty = number_or(body, "repetition_penalty", {0.01, 100}, 1.0F);
  // -1 is vLLM's word for all.
  params.top_k = static_cast<int>(std::max<std::int64_t>(
      0, body.integer("top_k", -1, std::numeric_limits<int>::max()).value_or(0)));
  if (params.top_p == 0.0F) {
    params.top_k = 1;  // the most likely token alone is the limit of a small top_p
    params.top_p = 1.0F;
  }
  if (const auto seed = body.integer("seed")) {
    params.seed = static_cast<std::uint64_t>(*seed);
  }
  parse_logit_bias(body, params);
  return params;
}

std::vector<std::string> parse_stop(const Fields& body) {
  const json::Value* stop = body.find("stop");
  std::vector<std::string> all;
  if (stop == nullptr) {
    return all;
  }
  if (stop->is_string()) {
    all.emplace_back(stop->get_string());
  } else if (const auto texts = body.texts("stop")) {
    all = *texts;
  }
  if (all.size() > kMaxStopStrings) {
    body.fail("stop",
              fmt::format("has {} strings, at most {} are allowed", all.size(), kMaxStopStrings));
  }
  all.erase(std::remove(all.begin(), all.end(), std::string()), all.end());
  return all;
}

std::int64_t parse_max_tokens(const Fields& body) {
  const auto whole = body.integer("max_completion_tokens", 1, kMaxTokens);
  const auto old = body.integer("max_tokens", 1, kMaxTokens);
  return whole ? *whole : old.value_or(-1);
}

void parse_thinking(const Fields& body, ChatPrompt& prompt, std::optional<int>& budget) {
  set_effort(body, "reasoning_effort", prompt);
  if (const auto reasoning = body.object("reasoning")) {
    set_effort(*reasoning, "effort", prompt);
  }
  bool is_off = prompt.mode == text::ThinkingMode::kChat;
  if (const auto arguments = body.object("chat_template_kwargs")) {
    set_effort(*arguments, "reasoning_effort", prompt);
    is_off = is_off || prompt.mode == text::ThinkingMode::kChat;
    for (const char* key : {"thinking", "enable_thinking"}) {
      if (const auto on = arguments->boolean(key)) {
        prompt.mode = *on ? text::ThinkingMode::kThinking : text::ThinkingMode::kChat;
        is_off = is_off || !*on;
      }
    }
  }
  if (const auto thinking = body.object("thinking")) {
    const auto type = thinking->word("type", {"enabled", "disabled", "adaptive"});
    if (type) {
      prompt.mode = *type == "disabled" ? text::ThinkingMode::kChat : text::ThinkingMode::kThinking;
      is_off = is_off || *type == "disabled";
    }
    set_budget(*thinking, "budget_tokens", budget);
  }
  set_budget(body, "thinking_token_budget", budget);
  if (is_off) {
    prompt.mode = text::ThinkingMode::kChat;
  }
}

ReplyFormat parse_reply_format(const Fields& body) {
  if (const auto format = body.object("response_format")) {
    return response_format(*format);
  }
  if (const auto outputs = body.object("structured_outputs")) {
    return guided_format(*outputs, "").value_or(ReplyFormat{});
  }
  return guided_format(body, "guided_").value_or(ReplyFormat{});
}

}  // namespace tandem::protocol
