// Small vocabularies and walks through grammars, for the tests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"
#include "foundation/base/random.h"

namespace tandem::testing {

// All 256 bytes, a few common pieces, and the special tokens: what a test needs of a tokenizer.
// Tokens 0..255 are the bytes.
grammar::VocabularyPtr byte_vocabulary();
extern const TokenId kEos;
extern const TokenId kThinkEnd;
extern const TokenId kDsml;

// "\xFF" stands for the DSML marker, everything else for its bytes; longest pieces first.
std::vector<TokenId> tokens_of(std::string_view text);
std::string text_of(const std::vector<TokenId>& tokens);

// Whether the constraint takes the whole text and then the end.
bool accepts(const grammar::GrammarPtr& grammar, std::string_view text);

// Tokens drawn from the masks until the end; nothing if `max_tokens` were not enough. Checks on the
// way that no mask is empty, that each token in it is accepted and that one outside is not.
std::optional<std::string> random_walk(const grammar::GrammarPtr& grammar, Random& random,
                                       int max_tokens);

// The mask of the constraint, found by trying every token.
std::vector<std::uint32_t> slow_mask(const grammar::TokenConstraint& constraint);
std::vector<std::uint32_t> mask_of(grammar::TokenConstraint& constraint);

}  // namespace tandem::testing
