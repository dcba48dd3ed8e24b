#include "bench/grammar/schema_order.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tandem::grammar {
namespace {

using Order = std::vector<std::string>;

// The key lists of all `properties` in the schema.
void collect(const json::Value& schema, std::vector<Order>* out) {
  if (schema.is_array()) {
    for (const json::Value& item : schema.get_array()) {
      collect(item, out);
    }
  }
  if (!schema.is_object()) {
    return;
  }
  for (const auto& member : schema.get_object()) {
    if (member.key() == "properties" && member.value().is_object()) {
      Order order;
      for (const auto& property : member.value().get_object()) {
        order.emplace_back(property.key());
      }
      out->push_back(std::move(order));
    }
    collect(member.value(), out);
  }
}

std::size_t place_of(const Order& order, std::string_view key) {
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), key) - order.begin());
}

const Order& best_order(const json::Object& object, const std::vector<Order>& orders) {
  static const Order none;
  const Order* best = &none;
  std::ptrdiff_t most = 0;
  for (const Order& order : orders) {
    const std::ptrdiff_t n = std::count_if(object.begin(), object.end(), [&](const auto& member) {
      return place_of(order, member.key()) < order.size();
    });
    if (n > most) {
      most = n;
      best = &order;
    }
  }
  return *best;
}

}  // namespace

KeyOrder::KeyOrder(const json::Value& value, const json::Value& schema) {
  std::vector<Order> orders;
  collect(schema, &orders);
  root_ = build(value, orders);
  write();
}

KeyOrder::Node KeyOrder::build(const json::Value& value, const std::vector<Order>& orders) {
  Node node;
  if (value.is_array()) {
    node.is_array = true;
    for (const json::Value& item : value.get_array()) {
      node.children.push_back(build(item, orders));
    }
  } else if (value.is_object()) {
    node.is_object = true;
    const Order& order = best_order(value.get_object(), orders);
    for (const auto& member : value.get_object()) {
      node.keys.emplace_back(member.key());
    }
    std::stable_sort(node.keys.begin(), node.keys.end(),
                     [&](const std::string& a, const std::string& b) {
                       return place_of(order, a) < place_of(order, b);
                     });
    for (const std::string& key : node.keys) {
      node.children.push_back(build(value.get_object().at(key), orders));
    }
  } else {
    node.scalar = value;
  }
  return node;
}

void KeyOrder::write() {
  text_.clear();
  places_.clear();
  write(root_);
}

void KeyOrder::write(Node& node) {
  if (!node.is_object && !node.is_array) {
    text_ += json::dump(node.scalar);
    return;
  }
  text_ += node.is_object ? '{' : '[';
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    text_ += i == 0 ? "" : ",";
    if (node.is_object) {
      places_.push_back({text_.size(), &node, i});
      text_ += json::dump(json::Value(node.keys[i])) + ":";
    }
    write(node.children[i]);
  }
  text_ += node.is_object ? '}' : ']';
}

bool KeyOrder::move_key_at(std::size_t byte) {
  // A token may hold a bracket or comma and the beginning of the key behind it.
  constexpr std::size_t kTokenSlack = 3;
  const auto behind = std::find_if(places_.begin(), places_.end(), [byte](const Place& place) {
    return place.begin > byte + kTokenSlack;
  });
  if (behind == places_.begin()) {
    return false;
  }
  const Place place = *std::prev(behind);
  std::vector<std::string>& keys = place.object->keys;
  std::vector<Node>& children = place.object->children;
  const auto at = static_cast<std::ptrdiff_t>(place.index);
  if (at > 0) {
    std::swap(keys[place.index - 1], keys[place.index]);
    std::swap(children[place.index - 1], children[place.index]);
  } else {
    std::rotate(keys.begin(), keys.begin() + 1, keys.end());
    std::rotate(children.begin(), children.begin() + 1, children.end());
  }
  write();
  return true;
}

}  // namespace tandem::grammar
