// The byte-level vocabulary of tests that speak over the wire: every byte is a token, so a reply
// can be cut anywhere.
#pragma once

#include <string_view>
#include <vector>

#include "model/text/tokenizer.h"

namespace tandem::testing {

const text::Tokenizer& wire_tokenizer();

// Tokens of a text: marks as their tokens, everything else byte by byte.
std::vector<TokenId> tokens_of(std::string_view text);

}  // namespace tandem::testing
