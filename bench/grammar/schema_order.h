// One JSON value in other orders of its keys. Keys have no order in JSON; a grammar that writes
// them in schema order can be asked for a value only in that order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::grammar {

class KeyOrder {
 public:
  // For every object the `properties` of the schema that has most of its keys gives the order; keys
  // that it lacks come last.
  KeyOrder(const json::Value& value, const json::Value& schema);

  // The value in the current order.
  const std::string& text() const { return text_; }

  // The text was refused at this byte: moves the key that stands there to another place.
  // False if there is no key.
  bool move_key_at(std::size_t byte);

 private:
  struct Node {
    json::Value scalar;
    bool is_object = false;
    bool is_array = false;
    std::vector<std::string> keys;
    std::vector<Node> children;
  };

  struct Place {
    std::size_t begin = 0;  // of the key in the text
    Node* object = nullptr;
    std::size_t index = 0;
  };

  static Node build(const json::Value& value, const std::vector<std::vector<std::string>>& orders);
  void write();
  void write(Node& node);

  Node root_;
  std::string text_;
  std::vector<Place> places_;
};

}  // namespace tandem::grammar
