// ResponsesApi: everything about /v1/responses but HTTP and the engine. It turns bodies into tasks
// with their replies, sees to it that finished responses are stored, and answers from the store.
// Thread-safe; `owner` is the name of the key that asks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "foundation/base/clock.h"
#include "serving/protocol/chat_reply.h"
#include "serving/protocol/ids.h"
#include "serving/protocol/item_list.h"
#include "serving/protocol/reply.h"
#include "serving/protocol/responses_request.h"
#include "serving/server/response_lookup.h"
#include "serving/server/response_store.h"

namespace tandem::server {

// A request that is ready for the engine.
struct PreparedReply {
  protocol::GenerationTask task;
  std::unique_ptr<protocol::Reply> reply;
};

class ResponsesApi {
 public:
  // `store` is nullptr if the server keeps none. `report` is told why a response was not stored.
  // `token_text` serves log-probabilities.
  ResponsesApi(ResponseStore* store, protocol::IdSource& ids, const Clock& clock,
               std::function<void(const Status&)> report, protocol::TokenText token_text = {});

  // POST /v1/responses. `memory` is the WebSocket's, if there is one; it must outlive the reply.
  protocol::Parsed<PreparedReply> create(const json::Value& body, const std::string& owner,
                                         ConnectionMemory* memory = nullptr);

  // POST /v1/responses/compact: only the whole form.
  protocol::Parsed<PreparedReply> compact(const json::Value& body, const std::string& owner);

  // POST /v1/responses/input_tokens: the task whose prompt is to be counted.
  protocol::Parsed<protocol::GenerationTask> count(const json::Value& body,
                                                   const std::string& owner);

  // GET, DELETE /v1/responses/{id}; GET /v1/responses/{id}/input_items. ERRORS: 404.
  protocol::Parsed<json::Value> get(const std::string& owner, const std::string& id);
  protocol::Parsed<json::Value> erase(const std::string& owner, const std::string& id);
  protocol::Parsed<json::Value> input_items(const std::string& owner, const std::string& id,
                                            const protocol::ItemListQuery& query);

  // GET /v1/responses/{id}?stream=true&starting_after=N: frames of the stored response.
  protocol::Parsed<std::string> replay(const std::string& owner, const std::string& id,
                                       std::int64_t starting_after);

  // POST /v1/responses/{id}/cancel. ERRORS: 404; 400, since a stored response has ended and one
  // that runs ends when its client goes.
  protocol::Parsed<json::Value> cancel(const std::string& owner, const std::string& id);

 private:
  bool keep(const std::string& owner, const json::Object& response, const json::Array& input);

  ResponseStore* store_;
  protocol::IdSource& ids_;
  const Clock& clock_;
  std::function<void(const Status&)> report_;
  protocol::TokenText token_text_;
};

}  // namespace tandem::server
