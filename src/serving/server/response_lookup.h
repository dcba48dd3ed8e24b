// What a Responses request may refer to: the store of the key that asks, and on a WebSocket also
// the connection's own memory, which makes `store: false` chains possible.
#pragma once

#include <optional>
#include <string>

#include "serving/protocol/responses_items.h"
#include "serving/server/response_store.h"

namespace tandem::server {

// The latest response of one WebSocket with everything before it. SOURCE: OpenResponses 2026-04-24,
// "WebSocket Continuation".
class ConnectionMemory {
 public:
  // `items`: input and output of the response and of all before it.
  void remember(std::string response_id, json::Array items);

  // A continuation that failed takes its response away.
  void forget(const std::string& response_id);

  const json::Array* find(const std::string& response_id) const;
  std::optional<json::Value> item(const std::string& item_id) const;

 private:
  std::string response_id_;
  json::Array items_;
};

class StoredLookup final : public protocol::ResponseLookup {
 public:
  // `store` is nullptr if the server keeps no responses; `memory` outside a WebSocket.
  StoredLookup(ResponseStore* store, std::string owner, const ConnectionMemory* memory = nullptr);

  protocol::Parsed<json::Array> history(const std::string& response_id) const override;
  std::optional<json::Value> item(const std::string& item_id) const override;

 private:
  ResponseStore* store_;
  std::string owner_;
  const ConnectionMemory* memory_;
};

}  // namespace tandem::server
