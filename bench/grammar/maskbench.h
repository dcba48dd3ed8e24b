// The MaskBench sample and a real vocabulary as test data, and the verdict on one schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"

namespace tandem::grammar {

struct MaskbenchCase {
  std::string name;  // file name without ".json"; suite: draft/file#number
  json::Value schema;
  struct Instance {
    bool valid;
    json::Value data;
  };
  std::vector<Instance> instances;
};

// Reads a .tar.zst archive of MaskBench or JSON-Schema-Test-Suite files, sorted by name.
Result<std::vector<MaskbenchCase>> read_maskbench(const std::string& archive);

// The vocabulary of a Hugging Face tokenizer.json with byte-level BPE, padded to `size` tokens;
// added tokens are special.
Result<VocabularyPtr> read_vocabulary(const std::string& tokenizer_json, int size);

// A vocabulary of the 256 bytes and some longer tokens, for tests without the real one.
VocabularyPtr small_vocabulary();

// The text in tokens, longest first.
std::vector<TokenId> greedy_tokens(const Vocabulary& vocabulary, std::string_view text);

struct Verdict {
  std::string category;  // pass, refused, false_accept, false_reject
  std::string detail;
  double compile_us = 0;
  std::vector<float> mask_us;
};

// Compiles strictly and walks every instance token by token with a mask before each token.
// A valid instance counts as accepted if its keys must stand in schema order for that.
Verdict judge(const VocabularyPtr& vocabulary, const MaskbenchCase& test);

}  // namespace tandem::grammar
