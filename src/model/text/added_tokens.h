// Added tokens: literal strings that are cut out of a text before anything else.
// The leftmost match wins, the longest at that place. A trie over the contents; text without the
// first byte of any token is passed over quickly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::text {

struct AddedMatch {
  std::size_t begin = 0;
  std::size_t end = 0;
  TokenId token = 0;
};

class AddedTokenTrie {
 public:
  AddedTokenTrie();

  // REQUIRES: content is not empty.
  void insert(std::string_view content, TokenId token);

  // The first match that lies in text[begin, end); false if there is none.
  bool find(std::string_view text, std::size_t begin, std::size_t end, AddedMatch& match) const;

 private:
  struct Node {
    TokenId token = -1;  // -1: no token ends here
    std::vector<std::pair<unsigned char, std::uint32_t>> children;
  };

  std::uint32_t child(std::uint32_t node, unsigned char byte) const;  // 0: none

  std::vector<Node> nodes_;
  std::array<std::uint32_t, 256> first_{};
};

}  // namespace tandem::text
