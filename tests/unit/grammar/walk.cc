#include "tests/unit/grammar/walk.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::testing {
namespace {

constexpr int kBytes = 256;

const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all = {
      "{\"", "\":",   "\", \"", "\"}",     "true", "false",       "null",      "  ",   "\n\n",
      "</",  "<",     "\">",    "name=\"", "tool", "tool_calls>", "invoke",    "\n</", "12",
      "e+",  "\\u00", "é",      "日",      "abc",  " string=\"",  "parameter", ">\n",  "\n\n<"};
  return all;
}

constexpr TokenId kFirstSpecial = kBytes + 27;

}  // namespace

const TokenId kEos = kFirstSpecial;
const TokenId kThinkEnd = kFirstSpecial + 1;
const TokenId kDsml = kFirstSpecial + 2;

grammar::VocabularyPtr byte_vocabulary() {
  static const grammar::VocabularyPtr made = [] {
    std::vector<std::string> bytes;
    for (int i = 0; i < kBytes; ++i) {
      bytes.emplace_back(1, static_cast<char>(i));
    }
    bytes.insert(bytes.end(), pieces().begin(), pieces().end());
    EXPECT_EQ(static_cast<TokenId>(bytes.size()), kFirstSpecial);
    bytes.resize(bytes.size() + 3);
    grammar::SpecialTokens roles;
    roles.eos = {kEos};
    roles.think_end = kThinkEnd;
    roles.dsml = kDsml;
    return grammar::Vocabulary::create(std::move(bytes), {kEos, kThinkEnd, kDsml}, roles);
  }();
  return made;
}

std::vector<TokenId> tokens_of(std::string_view text) {
  const auto& vocabulary = *byte_vocabulary();
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    if (text.front() == '\xFF') {
      tokens.push_back(kDsml);
      text.remove_prefix(1);
      continue;
    }
    const TokenId token = vocabulary.longest_prefix(text.substr(0, text.find('\xFF')));
    tokens.push_back(token);
    text.remove_prefix(vocabulary.bytes(token).size());
  }
  return tokens;
}

std::string text_of(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) {
    text += token == kDsml ? "\xFF" : std::string(byte_vocabulary()->bytes(token));
  }
  return text;
}

bool accepts(const grammar::GrammarPtr& grammar, std::string_view text) {
  const auto constraint = grammar::make_constraint(grammar);
  for (const TokenId token : tokens_of(text)) {
    if (!constraint->accept(token)) {
      return false;
    }
  }
  return constraint->accept(kEos);
}

std::vector<std::uint32_t> mask_of(grammar::TokenConstraint& constraint) {
  std::vector<std::uint32_t> mask(byte_vocabulary()->mask_words(), 0);
  if (!constraint.fill_mask(mask)) {
    std::fill(mask.begin(), mask.end(), 0xFFFFFFFFU);
  }
  return mask;
}

std::vector<std::uint32_t> slow_mask(const grammar::TokenConstraint& constraint) {
  std::vector<std::uint32_t> mask(byte_vocabulary()->mask_words(), 0);
  for (TokenId token = 0; token < byte_vocabulary()->size(); ++token) {
    if (constraint.clone()->accept(token)) {
      mask[static_cast<std::size_t>(token) / 32] |= 1U << (token % 32);
    }
  }
  return mask;
}

std::optional<std::string> random_walk(const grammar::GrammarPtr& grammar, Random& random,
                                       int max_tokens) {
  const auto constraint = grammar::make_constraint(grammar);
  std::vector<TokenId> tokens;
  for (int i = 0; i < max_tokens; ++i) {
    const std::vector<std::uint32_t> mask = mask_of(*constraint);
    std::vector<TokenId> allowed;
    for (TokenId token = 0; token < byte_vocabulary()->size(); ++token) {
      if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0) {
        allowed.push_back(token);
      }
    }
    if (allowed.empty()) {
      ADD_FAILURE() << "an empty mask after " << text_of(tokens);
      return std::nullopt;
    }
    // The end as often as everything else together, so that walks end.
    const bool can_end = std::find(allowed.begin(), allowed.end(), kEos) != allowed.end();
    const TokenId token = can_end && random.below(2) == 0
                              ? kEos
                              : allowed[static_cast<std::size_t>(random.below(allowed.size()))];
    EXPECT_TRUE(constraint->accept(token)) << "token " << token << " after " << text_of(tokens);
    if (token == kEos) {
      return text_of(tokens);
    }
    tokens.push_back(token);
  }
  return std::nullopt;
}

}  // namespace tandem::testing
