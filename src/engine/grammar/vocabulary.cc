#include "engine/grammar/vocabulary.h"

#include <algorithm>

#include "engine/grammar/string_masks.h"

namespace tandem::grammar {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;  // longer ones are never offered

// Sorted (bytes, token) pairs to a depth-first trie.
class TrieBuilder {
 public:
  using Entry = std::pair<std::string_view, std::uint32_t>;

  explicit TrieBuilder(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end());
  }

  ByteTrie build() && {
    add(0, entries_.size(), 0);
    return std::move(trie_);
  }

 private:
  // Adds the children of a node whose `depth`-byte prefix entries begin..end share.
  void add(std::size_t begin, std::size_t end, std::size_t depth) {
    while (begin < end) {
      const auto byte = static_cast<std::uint8_t>(entries_[begin].first[depth]);
      std::size_t stop = begin;
      while (stop < end && static_cast<std::uint8_t>(entries_[stop].first[depth]) == byte) {
        ++stop;
      }
      const std::size_t at = trie_.nodes.size();
      TrieNode node{};
      node.byte = byte;
      node.depth = static_cast<std::uint16_t>(depth + 1);
      trie_.max_depth = std::max(trie_.max_depth, depth + 1);
      node.first = static_cast<std::uint32_t>(trie_.values.size());
      while (begin < stop && entries_[begin].first.size() == depth + 1) {
        trie_.values.push_back(entries_[begin++].second);
        ++node.count;
      }
      trie_.nodes.push_back(node);
      add(begin, stop, depth + 1);
      trie_.nodes[at].subtree = static_cast<std::uint32_t>(trie_.nodes.size() - at);
      begin = stop;
    }
  }

  std::vector<Entry> entries_;
  ByteTrie trie_;
};

}  // namespace

Vocabulary::Vocabulary() = default;
Vocabulary::~Vocabulary() = default;

std::shared_ptr<const Vocabulary> Vocabulary::create(std::vector<std::string> token_bytes,
                                                     const std::vector<TokenId>& special_ids,
                                                     SpecialTokens roles) {
  std::shared_ptr<Vocabulary> out(new Vocabulary());
  out->token_bytes_ = std::move(token_bytes);
  out->roles_ = std::move(roles);
  const auto silence = [&](TokenId token) {
    if (token >= 0 && token < out->size()) {
      out->token_bytes_[static_cast<std::size_t>(token)].clear();
    }
  };
  for (const TokenId token : special_ids) {
    silence(token);
  }
  for (const TokenId token : out->roles_.eos) {
    silence(token);
  }
  silence(out->roles_.think_end);
  silence(out->roles_.dsml);
  std::vector<TrieBuilder::Entry> entries;
  for (std::size_t t = 0; t < out->token_bytes_.size(); ++t) {
    if (!out->token_bytes_[t].empty() && out->token_bytes_[t].size() <= kMaxTokenBytes) {
      entries.emplace_back(out->token_bytes_[t], static_cast<std::uint32_t>(t));
    }
  }
  out->trie_ = TrieBuilder(std::move(entries)).build();
  out->string_masks_ = std::make_unique<StringMasks>(*out);
  return out;
}

bool Vocabulary::is_eos(TokenId token) const {
  return std::find(roles_.eos.begin(), roles_.eos.end(), token) != roles_.eos.end();
}

TokenId Vocabulary::longest_prefix(std::string_view text) const {
  TokenId best = -1;
  std::size_t at = 0;
  std::size_t end = trie_.nodes.size();
  for (const char c : text) {
    while (at < end && trie_.nodes[at].byte != static_cast<std::uint8_t>(c)) {
      at += trie_.nodes[at].subtree;
    }
    if (at >= end) {
      break;
    }
    const TrieNode& node = trie_.nodes[at];
    if (node.count > 0) {
      best = static_cast<TokenId>(trie_.values[node.first]);
    }
    end = at + node.subtree;
    ++at;
  }
  return best;
}

}  // namespace tandem::grammar
