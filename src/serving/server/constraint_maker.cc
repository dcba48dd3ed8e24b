#include "serving/server/constraint_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/json/json.h"

namespace tandem::server {
namespace {

using protocol::ReplyFormat;

grammar::VocabularyPtr make_vocabulary(const text::Tokenizer& tokenizer, int vocab_size) {
  std::vector<std::string> bytes(static_cast<std::size_t>(vocab_size));
  std::vector<TokenId> special;
  for (TokenId id = 0; id < std::min(tokenizer.vocab_size(), vocab_size); ++id) {
    bytes[static_cast<std::size_t>(id)] = std::string(tokenizer.token_bytes(id));
    if (tokenizer.is_added(id)) {
      special.push_back(id);
    }
  }
  const text::SpecialTokens& tokens = tokenizer.special();
  grammar::SpecialTokens roles;
  roles.eos = {tokens.eos};
  roles.think_end = tokens.think_end;
  roles.dsml = tokens.dsml;
  return grammar::Vocabulary::create(std::move(bytes), special, std::move(roles));
}

std::string cache_key(const protocol::GenerationTask& task) {
  const ReplyFormat& format = task.format;
  std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}", static_cast<int>(format.kind), format.strict,
                  json::dump(format.schema), format.source, static_cast<int>(task.tool_choice.mode),
                  task.tool_choice.name, task.parallel_tool_calls);
  for (const protocol::Tool& tool : task.tools) {
    key += fmt::format("|{}|{}|{}|{}", tool.spec.name, tool.allowed, tool.spec.strict,
                       json::dump(tool.spec.parameters));
  }
  return key;
}

std::vector<grammar::ToolSpec> allowed_tools(const protocol::GenerationTask& task) {
  std::vector<grammar::ToolSpec> all;
  for (const protocol::Tool& tool : task.tools) {
    if (tool.allowed) {
      all.push_back(tool.spec);
    }
  }
  return all;
}

// The answer beside tool calls, as a schema; nothing if it is free text.
Result<std::optional<json::Value>> content_schema(const ReplyFormat& format) {
  switch (format.kind) {
    case ReplyFormat::Kind::kText:
      return std::optional<json::Value>();
    case ReplyFormat::Kind::kJsonObject:
      return std::optional<json::Value>(json::Object{{"type", "object"}});
    case ReplyFormat::Kind::kJsonSchema:
      return std::optional<json::Value>(format.schema);
    case ReplyFormat::Kind::kRegex:
    case ReplyFormat::Kind::kEbnf:
      break;
  }
  return invalid_argument("a regular expression or grammar cannot stand beside tools");
}

// Which request field a problem belongs to.
std::string param_of(const protocol::GenerationTask& task) {
  return task.tools.empty() ? task.format.param : "tools";
}

}  // namespace

ConstraintMaker::ConstraintMaker(const text::Tokenizer& tokenizer, int vocab_size)
    : vocabulary_(make_vocabulary(tokenizer, vocab_size)) {}

Result<grammar::GrammarPtr> ConstraintMaker::compile(const protocol::GenerationTask& task) {
  const ReplyFormat& format = task.format;
  if (!task.tools.empty()) {
    TANDEM_ASSIGN(const std::optional<json::Value> schema, content_schema(format));
    if (schema && format.strict) {  // the keywords of the schema alone decide what strict refuses
      TANDEM_TRY(grammar::compile_json_schema(vocabulary_, *schema, {true}).status());
    }
    return grammar::compile_tool_calls(vocabulary_, allowed_tools(task), task.tool_choice,
                                       task.parallel_tool_calls, schema ? &*schema : nullptr);
  }
  switch (format.kind) {
    case ReplyFormat::Kind::kJsonObject:
      return grammar::compile_json_object(vocabulary_);
    case ReplyFormat::Kind::kJsonSchema:
      return grammar::compile_json_schema(vocabulary_, format.schema, {format.strict});
    case ReplyFormat::Kind::kRegex:
      return grammar::compile_regex(vocabulary_, format.source);
    case ReplyFormat::Kind::kEbnf:
      return grammar::compile_ebnf(vocabulary_, format.source);
    case ReplyFormat::Kind::kText:
      break;
  }
  return grammar::GrammarPtr();
}

protocol::Parsed<TaskGrammar> ConstraintMaker::make(const protocol::GenerationTask& task) {
  TaskGrammar out;
  if (task.format.kind == ReplyFormat::Kind::kText && task.tools.empty()) {
    return out;
  }
  auto compiled = cache_.get(cache_key(task), [&] { return compile(task); });
  if (!compiled.ok()) {
    const std::string param = param_of(task);
    return protocol::bad_field(param, fmt::format("{}: {}", param, compiled.status().message()));
  }
  out.grammar = *compiled;
  for (const grammar::Unenforced& keyword : out.grammar->unenforced()) {
    out.ignored.push_back(fmt::format("{} at {}", keyword.keyword, keyword.path));
  }
  return out;
}

}  // namespace tandem::server
