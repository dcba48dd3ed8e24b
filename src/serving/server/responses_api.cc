#include "serving/server/responses_api.h"

#include <utility>

#include "serving/protocol/responses_compact.h"
#include "serving/protocol/responses_reply.h"

namespace tandem::server {
namespace {

using protocol::ApiError;
using protocol::Parsed;
using protocol::ResponsesRequest;

ApiError store_error(const Status& status, const std::string& id) {
  ApiError error = protocol::to_api_error(status);
  if (status.code() == StatusCode::kNotFound) {
    error.code = "response_not_found";
    error.param = "response_id";
    error.message = fmt::format("no response '{}' is stored", id);
  }
  return error;
}

ApiError no_store(const std::string& id) {
  return store_error(not_found("no response '{}'", id), id);
}

bool ended(const json::Object& response) {
  const json::Value& status = response.at("status");
  return status == "completed" || status == "incomplete";
}

// The connection remembers what the next turn may continue from.
void remember(ConnectionMemory& memory, const json::Object& response, json::Array before) {
  const json::Array& output = response.at("output").get_array();
  before.insert(before.end(), output.begin(), output.end());
  memory.remember(std::string(response.at("id").get_string()), std::move(before));
}

}  // namespace

ResponsesApi::ResponsesApi(ResponseStore* store, protocol::IdSource& ids, const Clock& clock,
                           std::function<void(const Status&)> report,
                           protocol::TokenText token_text)
    : store_(store),
      ids_(ids),
      clock_(clock),
      report_(std::move(report)),
      token_text_(std::move(token_text)) {}

bool ResponsesApi::keep(const std::string& owner, const json::Object& response,
                        const json::Array& input) {
  if (store_ == nullptr) {
    return false;
  }
  const Status status = store_->put(owner, response, input);
  if (!status.ok()) {
    report_(status);
  }
  return status.ok();
}

Parsed<PreparedReply> ResponsesApi::create(const json::Value& body, const std::string& owner,
                                           ConnectionMemory* memory) {
  Parsed<ResponsesRequest> request =
      protocol::parse_responses_request(body, StoredLookup(store_, owner, memory), ids_);
  if (!request.ok()) {
    return request.error();
  }
  const bool wants_store = request->settings.store;
  auto sink = [this, owner, memory, wants_store, input = std::move(request->input),
               history = std::move(request->history)](const json::Object& response) {
    if (!ended(response)) {
      return false;
    }
    if (memory != nullptr) {
      json::Array before = history;
      before.insert(before.end(), input.begin(), input.end());
      remember(*memory, response, std::move(before));
    }
    return wants_store && keep(owner, response, input);
  };
  PreparedReply prepared;
  const std::string model = request->task.model;
  prepared.reply = std::make_unique<protocol::ResponsesReply>(
      std::move(request->settings), model, ids_, clock_, std::move(sink), token_text_);
  prepared.task = std::move(request->task);
  return prepared;
}

Parsed<PreparedReply> ResponsesApi::compact(const json::Value& body, const std::string& owner) {
  Parsed<protocol::GenerationTask> task =
      protocol::parse_compact_request(body, StoredLookup(store_, owner), ids_);
  if (!task.ok()) {
    return task.error();
  }
  PreparedReply prepared;
  prepared.task = *std::move(task);
  prepared.reply = std::make_unique<protocol::CompactReply>(ids_, clock_);
  return prepared;
}

Parsed<protocol::GenerationTask> ResponsesApi::count(const json::Value& body,
                                                     const std::string& owner) {
  Parsed<ResponsesRequest> request =
      protocol::parse_responses_request(body, StoredLookup(store_, owner), ids_);
  if (!request.ok()) {
    return request.error();
  }
  return std::move(request->task);
}

Parsed<json::Value> ResponsesApi::get(const std::string& owner, const std::string& id) {
  if (store_ == nullptr) {
    return no_store(id);
  }
  Result<json::Object> response = store_->get(owner, id);
  if (!response.ok()) {
    return store_error(response.status(), id);
  }
  return json::Value(std::move(*response));
}

Parsed<json::Value> ResponsesApi::erase(const std::string& owner, const std::string& id) {
  if (store_ == nullptr) {
    return no_store(id);
  }
  const Status status = store_->erase(owner, id);
  if (!status.ok()) {
    return store_error(status, id);
  }
  return json::Value(json::Object{{"id", id}, {"object", "response"}, {"deleted", true}});
}

Parsed<json::Value> ResponsesApi::input_items(const std::string& owner, const std::string& id,
                                              const protocol::ItemListQuery& query) {
  if (store_ == nullptr) {
    return no_store(id);
  }
  const Result<json::Array> items = store_->input_items(owner, id);
  if (!items.ok()) {
    return store_error(items.status(), id);
  }
  Parsed<json::Object> page = protocol::list_items(*items, query);
  if (!page.ok()) {
    return page.error();
  }
  return json::Value(*std::move(page));
}

Parsed<std::string> ResponsesApi::replay(const std::string& owner, const std::string& id,
                                         std::int64_t starting_after) {
  const Parsed<json::Value> response = get(owner, id);
  if (!response.ok()) {
    return response.error();
  }
  return protocol::replay_response(response->get_object(), starting_after);
}

Parsed<json::Value> ResponsesApi::cancel(const std::string& owner, const std::string& id) {
  const Parsed<json::Value> response = get(owner, id);
  if (!response.ok()) {
    return response.error();
  }
  return protocol::bad_field(
      "response_id",
      fmt::format("response '{}' has ended with status '{}'; only a background response can be "
                  "cancelled, and this server makes none (close the connection to stop one that "
                  "runs)",
                  id, std::string_view(response->at("status").get_string())));
}

}  // namespace tandem::server
