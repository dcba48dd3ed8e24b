#include "serving/server/response_lookup.h"

#include <utility>

namespace tandem::server {
namespace {

protocol::ApiError not_found_error(std::string message) {
  protocol::ApiError error = protocol::bad_field("previous_response_id", std::move(message));
  error.code = "previous_response_not_found";
  return error;
}

}  // namespace

void ConnectionMemory::remember(std::string response_id, json::Array items) {
  response_id_ = std::move(response_id);
  items_ = std::move(items);
}

void ConnectionMemory::forget(const std::string& response_id) {
  if (response_id == response_id_) {
    response_id_.clear();
    items_.clear();
  }
}

const json::Array* ConnectionMemory::find(const std::string& response_id) const {
  return !response_id.empty() && response_id == response_id_ ? &items_ : nullptr;
}

std::optional<json::Value> ConnectionMemory::item(const std::string& item_id) const {
  for (const json::Value& item : items_) {
    const json::Value* id = json::find(item, "id");
    if (id != nullptr && *id == json::Value(item_id)) {
      return item;
    }
  }
  return std::nullopt;
}

StoredLookup::StoredLookup(ResponseStore* store, std::string owner, const ConnectionMemory* memory)
    : store_(store), owner_(std::move(owner)), memory_(memory) {}

protocol::Parsed<json::Array> StoredLookup::history(const std::string& response_id) const {
  if (memory_ != nullptr) {
    if (const json::Array* items = memory_->find(response_id)) {
      return *items;
    }
  }
  if (store_ == nullptr) {
    return not_found_error(fmt::format(
        "no response '{}': this server stores none (it runs without a state folder)", response_id));
  }
  Result<json::Array> items = store_->history(owner_, response_id);
  if (items.ok()) {
    return std::move(*items);
  }
  if (items.status().code() == StatusCode::kNotFound) {
    return not_found_error(items.status().message());
  }
  return protocol::to_api_error(items.status(), "previous_response_id");
}

std::optional<json::Value> StoredLookup::item(const std::string& item_id) const {
  if (memory_ != nullptr) {
    if (std::optional<json::Value> item = memory_->item(item_id)) {
      return item;
    }
  }
  if (store_ == nullptr) {
    return std::nullopt;
  }
  Result<json::Value> item = store_->item(owner_, item_id);
  return item.ok() ? std::optional(std::move(*item)) : std::nullopt;
}

}  // namespace tandem::server
