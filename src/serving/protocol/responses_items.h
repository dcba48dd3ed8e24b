// Items of the Responses API: reading "input" and stored history into messages, and giving every
// new item the id and the normal form under which it is stored. SOURCE: api.md 3.3.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"
#include "serving/protocol/conversation.h"
#include "serving/protocol/ids.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// What a request may refer to: the response store, or a connection's own memory.
class ResponseLookup {
 public:
  virtual ~ResponseLookup() = default;

  // Input and output items of a response and of all responses before it, oldest first.
  // ERRORS: code "previous_response_not_found".
  virtual Parsed<json::Array> history(const std::string& response_id) const = 0;

  // The item with this id, or nullopt.
  virtual std::optional<json::Value> item(const std::string& item_id) const = 0;
};

class ItemReader {
 public:
  ItemReader(ConversationBuilder& conversation, IdSource& ids, const ResponseLookup& lookup)
      : conversation_(conversation), ids_(ids), lookup_(lookup) {}

  // Items of stored responses: they were checked when they were new.
  void read_history(const json::Array& items, FieldErrors& errors);

  // "input": a string or a list of items. Returns the new items in normal form.
  json::Array read_input(const Fields& body);

 private:
  void read(const Fields& item);
  void message(const Fields& item);
  void reasoning(const Fields& item);
  void call(const Fields& item, bool is_custom);
  void result(const Fields& item);
  void compaction(const Fields& item);
  json::Value normal_form(const Fields& item);
  std::optional<json::Value> referenced(const Fields& item);

  ConversationBuilder& conversation_;
  IdSource& ids_;
  const ResponseLookup& lookup_;
};

}  // namespace tandem::protocol
