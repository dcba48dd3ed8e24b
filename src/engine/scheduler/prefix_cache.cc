#include "engine/scheduler/prefix_cache.h"

#include <algorithm>
#include <numeric>

#include "foundation/base/check.h"
#include "foundation/base/random.h"

namespace tandem::scheduler {
namespace {

// Prefixes with this many uses are kept longest.
constexpr std::int32_t kPinnedHits = 3;

}  // namespace

PrefixCache::PrefixCache(std::int32_t page_tokens, std::int32_t n_snapshots, PageLedger& pages)
    : page_tokens_(page_tokens),
      n_snapshots_(n_snapshots),
      pages_(pages),
      free_snapshots_(static_cast<std::size_t>(n_snapshots)) {
  std::iota(free_snapshots_.rbegin(), free_snapshots_.rend(), 0);
}

std::uint64_t PrefixCache::child_key(std::uint64_t key, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    key = mix64(key ^ static_cast<std::uint64_t>(token));
  }
  return key;
}

std::span<const TokenId> PrefixCache::block(std::span<const TokenId> tokens,
                                            std::int64_t index) const {
  const auto n = static_cast<std::size_t>(page_tokens_);
  return tokens.subspan(static_cast<std::size_t>(index) * n, n);
}

PrefixCache::NodeId PrefixCache::find_child(NodeId parent, std::span<const TokenId> tokens) const {
  const std::uint64_t key = child_key(parent == kNoNode ? 0 : at(parent).key, tokens);
  const auto range = index_.equal_range(key);
  for (auto it = range.first; it != range.second; ++it) {
    const Node& node = at(it->second);
    // The hash only finds candidates; the tokens decide.
    if (node.parent == parent &&
        std::equal(node.tokens.begin(), node.tokens.end(), tokens.begin(), tokens.end())) {
      return it->second;
    }
  }
  return kNoNode;
}

PrefixCache::NodeId PrefixCache::add_child(NodeId parent, std::span<const TokenId> tokens,
                                           PageId page) {
  if (free_nodes_.empty()) {
    free_nodes_.push_back(static_cast<NodeId>(nodes_.size()));
    nodes_.emplace_back();
  }
  const NodeId id = free_nodes_.back();
  free_nodes_.pop_back();
  Node node;
  node.alive = true;
  node.key = child_key(parent == kNoNode ? 0 : at(parent).key, tokens);
  node.parent = parent;
  node.tokens.assign(tokens.begin(), tokens.end());
  node.page = page;
  pages_.retain(page);
  index_.emplace(node.key, id);
  if (parent != kNoNode) {
    ++at(parent).n_children;
  }
  at(id) = std::move(node);
  return id;
}

PrefixCache::Match PrefixCache::match(std::span<const TokenId> tokens, std::int64_t n_tokens) {
  Match match;
  if (!enabled()) {
    return match;
  }
  const std::uint64_t now = ++uses_;
  std::vector<NodeId> path;
  std::size_t n_resumed = 0;
  NodeId node = kNoNode;
  for (std::int64_t i = 0; (i + 1) * page_tokens_ <= n_tokens; ++i) {
    node = find_child(node, block(tokens, i));
    if (node == kNoNode) {
      break;
    }
    at(node).last_used = now;
    path.push_back(node);
    if (at(node).snapshot >= 0) {
      n_resumed = path.size();
      match.snapshot = at(node).snapshot;
    }
  }
  for (std::size_t i = 0; i < n_resumed; ++i) {
    match.pages.push_back(at(path[i]).page);
  }
  match.node = n_resumed > 0 ? path[n_resumed - 1] : kNoNode;
  match.position = static_cast<Position>(n_resumed) * page_tokens_;
  match.shared_position = static_cast<Position>(path.size()) * page_tokens_;
  return match;
}

void PrefixCache::count_hit(const Match& match) {
  for (NodeId node = match.node; node != kNoNode; node = at(node).parent) {
    ++at(node).n_hits;
  }
}

std::optional<PrefixCache::Place> PrefixCache::insert(std::span<const TokenId> tokens,
                                                      Position position,
                                                      std::span<const PageId> pages) {
  TANDEM_CHECK(position > 0 && position % page_tokens_ == 0, "snapshots stand at page borders");
  const std::uint64_t now = ++uses_;
  NodeId node = kNoNode;
  for (std::int64_t i = 0; i < position / page_tokens_; ++i) {
    const auto tokens_of_page = block(tokens, i);
    const NodeId known = find_child(node, tokens_of_page);
    node = known != kNoNode ? known
                            : add_child(node, tokens_of_page, pages[static_cast<std::size_t>(i)]);
    at(node).last_used = now;
  }
  if (at(node).snapshot >= 0) {
    return std::nullopt;
  }
  ++at(node).n_children;  // holds the new path while another one is given up
  const auto snapshot = take_snapshot_place(node);
  --at(node).n_children;
  if (!snapshot.has_value()) {
    prune(node);
    return std::nullopt;
  }
  at(node).snapshot = *snapshot;
  return Place{node, *snapshot};
}

// True if `a` is given up before `b`.
bool PrefixCache::goes_before(const Node& a, const Node& b) const {
  const bool pinned_a = a.n_hits >= kPinnedHits;
  const bool pinned_b = b.n_hits >= kPinnedHits;
  return pinned_a != pinned_b ? pinned_b : a.last_used < b.last_used;
}

// Takes the place of the node that is given up first; `keep` is on the path of the new one.
std::optional<std::int32_t> PrefixCache::take_snapshot_place(NodeId keep) {
  if (free_snapshots_.empty()) {
    NodeId first = kNoNode;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      if (nodes_[i].alive && nodes_[i].snapshot >= 0 && id != keep &&
          (first == kNoNode || goes_before(nodes_[i], at(first)))) {
        first = id;
      }
    }
    if (first == kNoNode) {
      return std::nullopt;
    }
    release_snapshot(at(first));
    prune(first);
  }
  const std::int32_t place = free_snapshots_.back();
  free_snapshots_.pop_back();
  return place;
}

void PrefixCache::release_snapshot(Node& node) {
  if (node.snapshot >= 0) {
    free_snapshots_.push_back(node.snapshot);
    node.snapshot = -1;
  }
}

void PrefixCache::drop_if_unused(const Place& place) {
  if (place.node == kNoNode) {
    return;
  }
  Node& node = at(place.node);
  // The node may have been given up since and its id used again.
  if (node.alive && node.snapshot == place.snapshot && node.n_hits == 0) {
    release_snapshot(node);
    prune(place.node);
  }
}

// Removes nodes from here upwards that lead to no snapshot.
void PrefixCache::prune(NodeId node) {
  while (node != kNoNode && at(node).n_children == 0 && at(node).snapshot < 0) {
    const NodeId parent = at(node).parent;
    remove(node);
    node = parent;
  }
}

void PrefixCache::remove(NodeId id) {
  Node& node = at(id);
  TANDEM_CHECK(node.n_children == 0, "only leaves can be removed");
  release_snapshot(node);
  pages_.release({&node.page, 1});
  const auto range = index_.equal_range(node.key);
  for (auto it = range.first; it != range.second; ++it) {
    if (it->second == id) {
      index_.erase(it);
      break;
    }
  }
  if (node.parent != kNoNode) {
    --at(node.parent).n_children;
  }
  node = Node();
  free_nodes_.push_back(id);
}

bool PrefixCache::make_free(std::int64_t n) {
  while (pages_.n_free() < n) {
    NodeId first = kNoNode;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      // A page that a running sequence uses as well would not become free.
      if (node.alive && node.n_children == 0 && pages_.references(node.page) == 1 &&
          (first == kNoNode || goes_before(node, at(first)))) {
        first = static_cast<NodeId>(i);
      }
    }
    if (first == kNoNode) {
      return false;
    }
    const NodeId parent = at(first).parent;
    remove(first);
    prune(parent);
  }
  return true;
}

}  // namespace tandem::scheduler
