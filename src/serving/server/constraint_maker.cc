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
  return fmt::format("{}|{}|{}|{}", static_cast<int>(format.kind), format.strict,
                     json::dump(format.schema), format.source);
}

}  // namespace

ConstraintMaker::ConstraintMaker(const text::Tokenizer& tokenizer, int vocab_size)
    : vocabulary_(make_vocabulary(tokenizer, vocab_size)) {}

Result<grammar::GrammarPtr> ConstraintMaker::compile(const protocol::GenerationTask& task) {
  const ReplyFormat& format = task.format;
  switch (format.kind) {
    case ReplyFormat::Kind::kJsonObject:
      return grammar::compile_json_object(vocabulary_);
    case ReplyFormat::Kind::kJsonSchema:
      return grammar::compile_json_schema(vocabulary_, format.schema, {format.strict});
    case ReplyFormat::Kind::kRegex:
    case ReplyFormat::Kind::kEbnf:
      return unimplemented("regular expressions and grammars are not supported yet; use a schema");
    case ReplyFormat::Kind::kText:
      break;
  }
  return grammar::GrammarPtr();
}

protocol::Parsed<TaskGrammar> ConstraintMaker::make(const protocol::GenerationTask& task) {
  TaskGrammar out;
  if (task.format.kind == ReplyFormat::Kind::kText) {
    return out;
  }
  auto compiled = cache_.get(cache_key(task), [&] { return compile(task); });
  if (!compiled.ok()) {
    return protocol::bad_field(task.format.param, compiled.status().message());
  }
  out.grammar = *compiled;
  for (const grammar::Unenforced& keyword : out.grammar->unenforced()) {
    out.ignored.push_back(fmt::format("{} at {}", keyword.keyword, keyword.path));
  }
  return out;
}

}  // namespace tandem::server
