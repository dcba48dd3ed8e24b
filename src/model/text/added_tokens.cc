#include "model/text/added_tokens.h"

#include "foundation/base/check.h"

namespace tandem::text {

AddedTokenTrie::AddedTokenTrie() : nodes_(1) {}

std::uint32_t AddedTokenTrie::child(std::uint32_t node, unsigned char byte) const {
  if (node == 0) {
    return first_[byte];
  }
  for (const auto& [key, next] : nodes_[node].children) {
    if (key == byte) {
      return next;
    }
  }
  return 0;
}

void AddedTokenTrie::insert(std::string_view content, TokenId token) {
  TANDEM_CHECK(!content.empty(), "an added token needs a content");
  std::uint32_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    std::uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
      if (node == 0) {
        first_[byte] = next;
      } else {
        nodes_[node].children.emplace_back(byte, next);
      }
    }
    node = next;
  }
  nodes_[node].token = token;
}

bool AddedTokenTrie::find(std::string_view text, std::size_t begin, std::size_t end,
                          AddedMatch& match) const {
  for (; begin < end; ++begin) {
    std::uint32_t node = first_[static_cast<unsigned char>(text[begin])];
    bool found = false;
    for (std::size_t at = begin + 1; node != 0; ++at) {
      if (nodes_[node].token >= 0) {
        match = {begin, at, nodes_[node].token};
        found = true;
      }
      node = at < end ? child(node, static_cast<unsigned char>(text[at])) : 0;
    }
    if (found) {
      return true;
    }
  }
  return false;
}

}  // namespace tandem::text
