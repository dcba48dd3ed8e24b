#include "serving/protocol/item_list.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace tandem::protocol {
namespace {

constexpr int kDefaultLimit = 20;
constexpr int kMaxLimit = 100;

std::string_view id_of(const json::Value& item) {
  const json::Value* id = json::find(item, "id");
  return id != nullptr && id->is_string() ? std::string_view(id->get_string()) : "";
}

std::optional<int> parse_limit(const std::string& text) {
  int limit = kDefaultLimit;
  const char* const end = text.data() + text.size();
  if (!text.empty()) {
    const auto [stop, error] = std::from_chars(text.data(), end, limit);
    if (error != std::errc() || stop != end) {
      return std::nullopt;
    }
  }
  return limit >= 1 && limit <= kMaxLimit ? std::optional(limit) : std::nullopt;
}

}  // namespace

Parsed<json::Object> list_items(const json::Array& items, const ItemListQuery& query) {
  const std::optional<int> limit = parse_limit(query.limit);
  if (!limit) {
    return bad_field("limit", fmt::format("'limit' is '{}', expected a number from 1 to {}",
                                          query.limit, kMaxLimit));
  }
  if (!query.order.empty() && query.order != "asc" && query.order != "desc") {
    return bad_field("order",
                     fmt::format("'order' is '{}', expected one of: asc, desc", query.order));
  }
  std::vector<const json::Value*> ordered;
  for (const json::Value& item : items) {
    ordered.push_back(&item);
  }
  if (query.order != "asc") {
    std::reverse(ordered.begin(), ordered.end());
  }
  auto first = ordered.begin();
  if (!query.after.empty()) {
    first = std::find_if(ordered.begin(), ordered.end(),
                         [&query](const json::Value* item) { return id_of(*item) == query.after; });
    if (first == ordered.end()) {
      return bad_field("after",
                       fmt::format("'after' is '{}', but the list has no such item", query.after));
    }
    ++first;
  }
  const auto last = first + std::min<std::ptrdiff_t>(*limit, ordered.end() - first);
  json::Array data;
  std::for_each(first, last, [&data](const json::Value* item) { data.push_back(*item); });
  const auto id_or_null = [](const json::Array& page, bool front) {
    return page.empty() ? json::Value() : json::Value(id_of(front ? page.front() : page.back()));
  };
  json::Object out{{"object", "list"},
                   {"first_id", id_or_null(data, true)},
                   {"last_id", id_or_null(data, false)},
                   {"has_more", last != ordered.end()}};
  out["data"] = std::move(data);
  return out;
}

}  // namespace tandem::protocol
