#include "engine/grammar/string_masks.h"

#include <algorithm>

namespace tandem::grammar {

StringMasks::StringMasks(const Vocabulary& vocabulary) {
  for (Limits* limits : {&quoted_limits_, &raw_limits_}) {
    for (std::vector<std::uint32_t>& mask : limits->up_to) {
      mask.assign(vocabulary.mask_words(), 0);
    }
  }
  for (std::uint8_t place = 0; place < body::kCount; ++place) {
    const bool between = place == body::kBetween;
    walk(vocabulary, TextForm::kQuoted, place, &quoted_[place],
         between ? &quoted_limits_ : nullptr);
    walk(vocabulary, TextForm::kRaw, place, &raw_[place], between ? &raw_limits_ : nullptr);
  }
  for (Limits* limits : {&quoted_limits_, &raw_limits_}) {
    for (std::size_t k = 1; k <= kMaxChars; ++k) {
      for (std::size_t w = 0; w < vocabulary.mask_words(); ++w) {
        limits->up_to[k][w] |= limits->up_to[k - 1][w];
      }
    }
  }
}

void StringMasks::walk(const Vocabulary& vocabulary, TextForm form, std::uint8_t place, Place* out,
                       Limits* limits) {
  struct At {
    std::uint8_t place;
    std::uint32_t chars;
  };
  out->mask.assign(vocabulary.mask_words(), 0);
  const std::vector<TrieNode>& nodes = vocabulary.trie().nodes;
  std::vector<At> path(vocabulary.trie().max_depth + 1);
  std::string inside;
  path[0] = {place, 0};
  for (std::size_t i = 0; i < nodes.size();) {
    const TrieNode& node = nodes[i];
    const At before = path[node.depth - 1U];
    inside.resize(node.depth - 1U);
    const std::uint8_t next = body::next(form, before.place, node.byte);
    if (next == body::kDead || next == body::kClosed) {
      if (next == body::kClosed) {
        out->exits.push_back({static_cast<std::uint32_t>(i), before.chars, inside});
      }
      i += node.subtree;
      continue;
    }
    const At now = {next, before.chars + (before.place == body::kBetween ? 1U : 0U)};
    path[node.depth] = now;
    inside.push_back(static_cast<char>(node.byte));
    for (std::uint32_t k = 0; k < node.count; ++k) {
      const std::uint32_t token = vocabulary.trie().values[node.first + k];
      out->mask[token / 32] |= 1U << (token % 32);
      if (limits != nullptr) {
        max_chars_ = std::max(max_chars_, now.chars);
        if (now.chars <= kMaxChars) {
          limits->up_to[now.chars][token / 32] |= 1U << (token % 32);
        } else {
          limits->longer.emplace_back(now.chars, token);
        }
      }
    }
    ++i;
  }
}

void StringMasks::add_at_most(TextForm form, std::uint32_t chars,
                              std::vector<std::uint32_t>* mask) const {
  const Limits& limits = form == TextForm::kQuoted ? quoted_limits_ : raw_limits_;
  const std::vector<std::uint32_t>& base = limits.up_to[std::min(chars, kMaxChars)];
  for (std::size_t w = 0; w < base.size(); ++w) {
    (*mask)[w] |= base[w];
  }
  if (chars > kMaxChars) {
    for (const auto& [count, token] : limits.longer) {
      if (count <= chars) {
        (*mask)[token / 32] |= 1U << (token % 32);
      }
    }
  }
}

}  // namespace tandem::grammar
