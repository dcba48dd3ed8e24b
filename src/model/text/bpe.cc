#include "model/text/bpe.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>

#include "foundation/base/random.h"

namespace tandem::text {
namespace {

constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();
// Above this length the heap is faster than scanning for the minimum after every merge.
constexpr std::size_t kScanLimit = 96;

std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t table_size(std::size_t n) {
  std::size_t size = 16;
  while (size < 2 * n) {
    size *= 2;
  }
  return size;
}

Merge merge_of(const MergeTable& table, TokenId left, TokenId right) {
  const Merge* found = table.find(left, right);
  return found != nullptr ? *found : Merge{kNoRank, 0};
}

// Merges in place, looking for the lowest rank anew after every merge.
void merge_by_scan(const MergeTable& table, std::vector<TokenId>& symbols,
                   std::vector<Merge>& merges) {
  merges.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    merges.push_back(merge_of(table, symbols[i], symbols[i + 1]));
  }
  while (!merges.empty()) {
    const auto best =
        std::min_element(merges.begin(), merges.end(),
                         [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->rank == kNoRank) {
      return;
    }
    const auto i = static_cast<std::size_t>(best - merges.begin());
    symbols[i] = best->token;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    merges.erase(best);
    if (i > 0) {
      merges[i - 1] = merge_of(table, symbols[i - 1], symbols[i]);
    }
    if (i < merges.size()) {
      merges[i] = merge_of(table, symbols[i], symbols[i + 1]);
    }
  }
}

struct Candidate {
  std::uint32_t rank;
  std::uint32_t left;  // index of the left symbol
  TokenId token;       // what the pair becomes

  bool operator<(const Candidate& other) const {  // priority_queue: the greatest comes first
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

// A doubly linked list of symbols; a removed one has the token kGone.
class SymbolList {
 public:
  SymbolList(const MergeTable& table, std::vector<TokenId>& symbols,
             std::vector<std::uint32_t>& links)
      : table_(table),
        symbols_(symbols),
        links_(links),
        n_(static_cast<std::uint32_t>(symbols.size())) {
    links_.resize(2 * symbols.size());
    for (std::uint32_t i = 0; i < n_; ++i) {
      next(i) = i + 1;
      previous(i) = i == 0 ? n_ : i - 1;
    }
    for (std::uint32_t i = 0; i < n_; ++i) {
      push(i);
    }
  }

  void merge_all() {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const std::uint32_t right = symbols_[top.left] == kGone ? n_ : next(top.left);
      if (right == n_) {
        continue;
      }
      const Merge* now = table_.find(symbols_[top.left], symbols_[right]);
      if (now == nullptr || now->token != top.token) {
        continue;  // one of the two was merged otherwise since
      }
      symbols_[top.left] = top.token;
      symbols_[right] = kGone;
      next(top.left) = next(right);
      if (next(right) != n_) {
        previous(next(right)) = top.left;
      }
      push(top.left);
      if (previous(top.left) != n_) {
        push(previous(top.left));
      }
    }
    symbols_.erase(std::remove(symbols_.begin(), symbols_.end(), kGone), symbols_.end());
  }

 private:
  static constexpr TokenId kGone = -1;

  std::uint32_t& next(std::uint32_t i) { return links_[2 * i]; }

  std::uint32_t& previous(std::uint32_t i) { return links_[2 * i + 1]; }

  void push(std::uint32_t left) {
    const std::uint32_t right = next(left);
    if (right == n_) {
      return;
    }
    if (const Merge* merge = table_.find(symbols_[left], symbols_[right]); merge != nullptr) {
      heap_.push({merge->rank, left, merge->token});
    }
  }

  const MergeTable& table_;
  std::vector<TokenId>& symbols_;
  std::vector<std::uint32_t>& links_;
  std::uint32_t n_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

MergeTable::MergeTable(std::size_t n_merges)
    : slots_(table_size(n_merges)), mask_(slots_.size() - 1) {}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = pair_key(left, right);
  std::uint64_t at = mix64(key) & mask_;
  while (slots_[at].key != kFree && slots_[at].key != key) {
    at = (at + 1) & mask_;
  }
  slots_[at] = {key, merge};
}

const Merge* MergeTable::find(TokenId left, TokenId right) const {
  const std::uint64_t key = pair_key(left, right);
  for (std::uint64_t at = mix64(key) & mask_; slots_[at].key != kFree; at = (at + 1) & mask_) {
    if (slots_[at].key == key) {
      return &slots_[at].merge;
    }
  }
  return nullptr;
}

PieceCache::PieceCache() : entries_(kEntries) {}

std::uint64_t PieceCache::hash(std::string_view piece) {
  std::uint64_t value = piece.size();
  std::size_t at = 0;
  for (; at + 8 <= piece.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, piece.data() + at, 8);
    value = mix64(value ^ word);
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, piece.data() + at, piece.size() - at);
  return mix64(value ^ tail);
}

bool PieceCache::append(std::string_view piece, std::uint64_t hash,
                        std::vector<TokenId>& out) const {
  const Entry& entry = entries_[hash % kEntries];
  if (entry.hash != hash || entry.n_bytes == 0 ||
      std::string_view(entry.bytes.data(), entry.n_bytes) != piece) {
    return false;
  }
  out.insert(out.end(), entry.tokens.begin(), entry.tokens.begin() + entry.n_tokens);
  return true;
}

void PieceCache::store(std::string_view piece, std::uint64_t hash, const TokenId* tokens,
                       std::size_t n) {
  if (piece.empty() || piece.size() > kMaxBytes || n > kMaxTokens) {
    return;
  }
  Entry& entry = entries_[hash % kEntries];
  entry.hash = hash;
  entry.n_bytes = static_cast<std::uint8_t>(piece.size());
  entry.n_tokens = static_cast<std::uint8_t>(n);
  std::copy(piece.begin(), piece.end(), entry.bytes.begin());
  std::copy(tokens, tokens + n, entry.tokens.begin());
}

void bpe_encode(std::string_view piece, const MergeTable& merges,
                const std::array<TokenId, 256>& byte_tokens, BpeScratch& scratch,
                std::vector<TokenId>& out) {
  if (piece.size() == 1) {
    out.push_back(byte_tokens[static_cast<unsigned char>(piece[0])]);
    return;
  }
  const std::uint64_t hash = PieceCache::hash(piece);
  if (scratch.cache.append(piece, hash, out)) {
    return;
  }
  scratch.symbols.clear();
  for (const char c : piece) {
    scratch.symbols.push_back(byte_tokens[static_cast<unsigned char>(c)]);
  }
  if (piece.size() <= kScanLimit) {
    merge_by_scan(merges, scratch.symbols, scratch.merges);
  } else {
    SymbolList(merges, scratch.symbols, scratch.links).merge_all();
  }
  scratch.cache.store(piece, hash, scratch.symbols.data(), scratch.symbols.size());
  out.insert(out.end(), scratch.symbols.begin(), scratch.symbols.end());
}

}  // namespace tandem::text
