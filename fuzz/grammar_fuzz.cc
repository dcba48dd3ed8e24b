// Schema or grammar text, then tokens. The first byte chooses the notation; the text ends at a zero
// byte, and the rest are choices among the tokens that the mask allows. No mask may be empty, what
// it allows is accepted, what it refuses is not, and a rollback leads back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"
#include "foundation/json/json.h"

namespace {

using namespace tandem;

constexpr int kVocabulary = 300;
constexpr TokenId kEos = 299;

void must(bool holds) {
  if (!holds) {
    std::abort();
  }
}

const grammar::VocabularyPtr& vocabulary() {
  static const grammar::VocabularyPtr made = [] {
    std::vector<std::string> bytes;
    for (int i = 0; i < 256; ++i) {
      bytes.emplace_back(1, static_cast<char>(i));
    }
    for (const char* text : {"{\"", "\":", "\",\"", "\"}", "true", "null", "\n\n<", "</", "12"}) {
      bytes.emplace_back(text);
    }
    bytes.resize(kVocabulary);
    grammar::SpecialTokens roles;
    roles.eos = {kEos};
    roles.think_end = kEos - 1;
    roles.dsml = kEos - 2;
    return grammar::Vocabulary::create(std::move(bytes), {}, roles);
  }();
  return made;
}

Result<grammar::GrammarPtr> compile(std::uint8_t notation, std::string_view text) {
  if (notation % 4 == 0) {
    return grammar::compile_ebnf(vocabulary(), text);
  }
  if (notation % 4 == 1) {
    return grammar::compile_regex(vocabulary(), text);
  }
  TANDEM_ASSIGN(const json::Value schema, json::parse(text));
  if (notation % 4 == 2) {
    return grammar::compile_json_schema(vocabulary(), schema, {(notation & 4) != 0});
  }
  grammar::ToolSpec tool;
  tool.name = "t";
  tool.parameters = schema;
  return grammar::compile_tool_calls(vocabulary(), {tool}, {grammar::ToolChoiceMode::kRequired, ""},
                                     true);
}

bool allowed(const std::vector<std::uint32_t>& mask, TokenId token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0;
}

// The nth allowed token, or -1 if the mask is empty.
TokenId choose(const std::vector<std::uint32_t>& mask, std::uint8_t n) {
  std::vector<TokenId> all;
  for (TokenId token = 0; token < kVocabulary; ++token) {
    if (allowed(mask, token)) {
      all.push_back(token);
    }
  }
  return all.empty() ? -1 : all[n % all.size()];
}

std::vector<std::uint32_t> mask_of(grammar::TokenConstraint& constraint) {
  std::vector<std::uint32_t> mask(vocabulary()->mask_words(), 0);
  if (!constraint.fill_mask(mask)) {
    mask.assign(mask.size(), 0xFFFFFFFFU);
  }
  return mask;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t end = std::min(all.find('\0'), all.size());
  const auto compiled = compile(data[0], all.substr(0, end));
  if (!compiled.ok()) {
    must(!compiled.status().message().empty());
    return 0;
  }
  const auto constraint = grammar::make_constraint(*compiled);
  for (std::size_t i = end + 1; i < all.size() && i < end + 200; ++i) {
    const auto mask = mask_of(*constraint);
    const TokenId token = choose(mask, static_cast<std::uint8_t>(all[i]));
    must(token >= 0);
    const auto other = static_cast<TokenId>((token + 7) % kVocabulary);
    if (!allowed(mask, other)) {
      must(!constraint->accept(other));
    }
    must(constraint->accept(token));
    if (token == kEos) {
      return 0;
    }
    if (i % 5 == 0) {
      constraint->rollback(1);
      must(mask_of(*constraint) == mask);
      must(constraint->accept(token));
    }
  }
  return 0;
}
