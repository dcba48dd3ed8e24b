// PrefixCache: which computed prefixes can be used again. A tree of full pages; a node is one page
// of tokens after its parent's. Some nodes have a snapshot: everything a slot needs, besides the
// pages, to go on from the end of that node. Pure bookkeeping: pages are counted in the PageLedger,
// snapshots are places in the store that PlanExecutor keeps on every rank.
//
// Full pages never change, so they are shared without copying. Places are given up least recently
// used first; prefixes that several sequences have used (system prompts) go last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/scheduler/page_ledger.h"
#include "foundation/base/ids.h"

namespace tandem::scheduler {

class PrefixCache {
 public:
  using NodeId = std::int32_t;
  static constexpr NodeId kNoNode = -1;

  // n_snapshots 0: caches nothing. `pages` outlives the cache.
  PrefixCache(std::int32_t page_tokens, std::int32_t n_snapshots, PageLedger& pages);

  bool enabled() const { return n_snapshots_ > 0; }

  struct Match {
    std::vector<PageId> pages;     // of the tokens below `position`
    Position position = 0;         // 0: nothing to resume from
    std::int32_t snapshot = -1;    // at `position`
    Position shared_position = 0;  // tokens below it are known, with or without a snapshot
    NodeId node = kNoNode;         // of the snapshot
  };

  // The longest prefix of `tokens`, at most n_tokens of them, that can be resumed.
  Match match(std::span<const TokenId> tokens, std::int64_t n_tokens);

  // A sequence resumes from a match.
  void count_hit(const Match& match);

  struct Place {
    NodeId node = kNoNode;
    std::int32_t snapshot = -1;
  };

  // Makes the first `position` tokens known, whose pages are given, with a place for a snapshot at
  // `position`. Nothing if there is one already. REQUIRES: enabled; position is a positive multiple
  // of the page size; one page for each.
  std::optional<Place> insert(std::span<const TokenId> tokens, Position position,
                              std::span<const PageId> pages);

  // Gives up the snapshot of a place that insert() gave, unless a sequence has resumed from it.
  void drop_if_unused(const Place& place);

  // Gives up nodes until n pages are free. False: not possible.
  bool make_free(std::int64_t n);

  std::int64_t n_nodes() const { return static_cast<std::int64_t>(index_.size()); }
  std::int64_t n_snapshots_used() const {
    return n_snapshots_ - static_cast<std::int64_t>(free_snapshots_.size());
  }

 private:
  struct Node {
    bool alive = false;
    std::uint64_t key = 0;  // hash of all tokens up to the end of this node
    NodeId parent = kNoNode;
    std::vector<TokenId> tokens;
    PageId page = 0;
    std::int32_t n_children = 0;
    std::int32_t snapshot = -1;
    std::int32_t n_hits = 0;  // sequences that resumed from here or further down
    std::uint64_t last_used = 0;
  };

  Node& at(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& at(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  static std::uint64_t child_key(std::uint64_t key, std::span<const TokenId> tokens);
  NodeId find_child(NodeId parent, std::span<const TokenId> tokens) const;
  NodeId add_child(NodeId parent, std::span<const TokenId> tokens, PageId page);
  std::span<const TokenId> block(std::span<const TokenId> tokens, std::int64_t index) const;
  bool goes_before(const Node& a, const Node& b) const;
  std::optional<std::int32_t> take_snapshot_place(NodeId keep);
  void release_snapshot(Node& node);
  void prune(NodeId node);
  void remove(NodeId node);

  std::int32_t page_tokens_;
  std::int32_t n_snapshots_;
  PageLedger& pages_;
  std::vector<Node> nodes_;
  std::vector<NodeId> free_nodes_;
  std::unordered_multimap<std::uint64_t, NodeId> index_;  // by key
  std::vector<std::int32_t> free_snapshots_;
  std::uint64_t uses_ = 0;
};

}  // namespace tandem::scheduler
