#include "tests/support/wire_tokens.h"

#include "tests/unit/text/test_vocabulary.h"

namespace tandem::testing {

const text::Tokenizer& wire_tokenizer() {
  static const text::Tokenizer tokenizer = text::make_small_tokenizer();
  return tokenizer;
}

std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> out;
  for (const TokenId id : wire_tokenizer().encode(text, {.allow_added_tokens = true})) {
    if (wire_tokenizer().is_added(id)) {
      out.push_back(id);
      continue;
    }
    for (const char c : wire_tokenizer().token_bytes(id)) {
      out.push_back(wire_tokenizer().find_bytes(std::string_view(&c, 1)).value());
    }
  }
  return out;
}

}  // namespace tandem::testing
