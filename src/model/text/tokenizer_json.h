// Reads a Hugging Face tokenizer.json into plain tables, or says what in it is not as expected.
// Memory is bounded by the size of the file: ids must be dense.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/ids.h"
#include "foundation/base/status.h"

namespace tandem::text {

struct AddedTokenEntry {
  TokenId id = 0;
  std::string content;
  bool special = false;
};

struct MergeEntry {  // rank = place in the list
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
};

struct TokenizerTables {
  std::vector<std::string> tokens;         // bytes by id; empty where an id is not defined
  std::vector<MergeEntry> merges;          // [n_merges]
  std::vector<AddedTokenEntry> added;      // [n_added]
  std::array<TokenId, 256> byte_tokens{};  // base token of each byte
};

// ERRORS: kInvalidArgument; messages begin with `name`.
Result<TokenizerTables> parse_tokenizer_json(std::string_view json_text, std::string_view name);

}  // namespace tandem::text
