// Byte-level BPE inside one piece: bytes become base tokens, then the adjacent pair of the lowest
// rank is merged, the leftmost first among equals, until no pair has a rank. SOURCE: model.md 5.1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "foundation/base/ids.h"

namespace tandem::text {

struct Merge {
  std::uint32_t rank = 0;
  TokenId token = 0;
};

// (left token, right token) -> rank and result: open addressing, at most half full.
class MergeTable {
 public:
  explicit MergeTable(std::size_t n_merges);

  // A pair that is there already gets the new rank, as in the reference.
  void insert(TokenId left, TokenId right, Merge merge);

  const Merge* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  std::vector<Slot> slots_;
  std::uint64_t mask_;
};

// Remembers the tokens of short pieces. Direct-mapped: a newer piece takes the place of an older.
class PieceCache {
 public:
  PieceCache();

  // Appends the tokens of a known piece; false if it is not known.
  bool append(std::string_view piece, std::uint64_t hash, std::vector<TokenId>& out) const;

  void store(std::string_view piece, std::uint64_t hash, const TokenId* tokens, std::size_t n);

  static std::uint64_t hash(std::string_view piece);

 private:
  static constexpr std::size_t kMaxBytes = 27;
  static constexpr std::size_t kMaxTokens = 6;
  static constexpr std::size_t kEntries = std::size_t{1} << 14;

  struct Entry {
    std::uint64_t hash = 0;
    std::uint8_t n_bytes = 0;  // 0: free
    std::uint8_t n_tokens = 0;
    std::array<char, kMaxBytes> bytes{};
    std::array<TokenId, kMaxTokens> tokens{};
  };

  std::vector<Entry> entries_;
};

// Scratch space of one encoder; not shared between threads.
struct BpeScratch {
  PieceCache cache;
  std::vector<TokenId> symbols;
  std::vector<Merge> merges;         // of short pieces: the merge of symbols i and i+1
  std::vector<std::uint32_t> links;  // of long pieces
};

// Appends the tokens of a piece. `byte_tokens` has the base token of each of the 256 bytes.
void bpe_encode(std::string_view piece, const MergeTable& merges,
                const std::array<TokenId, 256>& byte_tokens, BpeScratch& scratch,
                std::vector<TokenId>& out);

}  // namespace tandem::text
