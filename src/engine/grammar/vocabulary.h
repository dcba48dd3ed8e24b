// Vocabulary: the tokens as bytes, arranged as a trie in depth-first order so that a grammar can
// decide all of them in one walk, and the few special tokens that a grammar knows by role.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::grammar {

class StringMasks;

// Special tokens by role; -1 where the tokenizer has none.
struct SpecialTokens {
  std::vector<TokenId> eos;  // any of them ends the sequence
  TokenId think_end = -1;    // </think>
  TokenId dsml = -1;         // the tool-call marker (model.md 5.4)
};

// One trie node. Its children follow it; skip `subtree` entries to reach the next sibling.
struct TrieNode {
  std::uint32_t subtree;  // number of nodes in this subtree, itself included
  std::uint32_t first;    // first index into `values` of the tokens that end here
  std::uint16_t count;    // how many tokens end here
  std::uint16_t depth;    // bytes from the root
  std::uint8_t byte;      // the byte on the edge into this node
};

// A byte trie in depth-first order. `values` are token ids grouped by node.
struct ByteTrie {
  std::vector<TrieNode> nodes;  // without a root: the top level starts at 0
  std::vector<std::uint32_t> values;
  std::size_t max_depth = 0;
};

class Vocabulary {
 public:
  // `token_bytes[t]` are the bytes that token t adds to the text. Tokens named in `special_ids`
  // (and in `roles`), and tokens without bytes, never match text: only a grammar that names their
  // role allows them. Duplicate byte strings are fine.
  static std::shared_ptr<const Vocabulary> create(std::vector<std::string> token_bytes,
                                                  const std::vector<TokenId>& special_ids,
                                                  SpecialTokens roles);
  ~Vocabulary();

  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int size() const { return static_cast<int>(token_bytes_.size()); }

  // ceil(size / 32): the number of words in a mask.
  std::size_t mask_words() const { return (token_bytes_.size() + 31) / 32; }

  // The bytes of an ordinary token; empty for a special one.
  std::string_view bytes(TokenId token) const {
    return token_bytes_[static_cast<std::size_t>(token)];
  }

  bool is_eos(TokenId token) const;

  const SpecialTokens& roles() const { return roles_; }

  const ByteTrie& trie() const { return trie_; }

  // The answers for free text inside a JSON string, worked out once per vocabulary.
  const StringMasks& string_masks() const { return *string_masks_; }

  // The longest ordinary token that is a prefix of `text`, or -1.
  TokenId longest_prefix(std::string_view text) const;

 private:
  Vocabulary();

  std::vector<std::string> token_bytes_;
  SpecialTokens roles_;
  ByteTrie trie_;
  std::unique_ptr<StringMasks> string_masks_;
};

}  // namespace tandem::grammar
