// ResponseStore: responses that clients continue from, in one SQLite file. SOURCE: api.md 3.3.
// A response is written in one transaction before the client learns that it is complete, so a
// killed process loses none that a client knows of. Every caller (`owner`, the name of an API key)
// sees only its own. Thread-safe.
//
//   responses  one row each: body, new input items, output items; `used` moves with every
//              continuation, for the response and all before it, so chains expire as a whole
//   items      item id -> response, for item_reference
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "foundation/base/clock.h"
#include "foundation/base/status.h"
#include "foundation/json/json.h"
#include "serving/server/sqlite_database.h"

namespace tandem::server {

struct ResponseStoreOptions {
  std::filesystem::path file;                                     // empty: in memory
  std::int64_t max_age_s = std::int64_t{30} * 24 * 3600;          // since the last use
  std::int64_t max_bytes = std::int64_t{2} * 1024 * 1024 * 1024;  // of JSON text
};

class ResponseStore {
 public:
  // ERRORS: kDataLoss (damaged file), kUnavailable (another server has it), kPermissionDenied,
  // kFailedPrecondition (a newer version's file).
  static Result<std::unique_ptr<ResponseStore>> open(ResponseStoreOptions options,
                                                     const Clock& clock);

  // Stores a response with the new input items of its request; expires what is too old or too much.
  Status put(const std::string& owner, const json::Object& response, const json::Array& input);

  // The response object. ERRORS: kNotFound.
  Result<json::Object> get(const std::string& owner, const std::string& id);

  // The new input items of one response. ERRORS: kNotFound.
  Result<json::Array> input_items(const std::string& owner, const std::string& id);

  // Input and output items of the response and of all before it, oldest first.
  // ERRORS: kNotFound if any of them is not there.
  Result<json::Array> history(const std::string& owner, const std::string& id);

  // ERRORS: kNotFound.
  Result<json::Value> item(const std::string& owner, const std::string& item_id);

  // ERRORS: kNotFound.
  Status erase(const std::string& owner, const std::string& id);

  std::int64_t bytes() const;

 private:
  ResponseStore(ResponseStoreOptions options, const Clock& clock,
                std::unique_ptr<SqliteDatabase> database);

  Status prepare_schema();
  Status insert(const std::string& owner, const json::Object& response, const json::Array& input);
  Status insert_items(const std::string& owner, const std::string& id, const json::Array& items);
  Status touch_chain(const std::string& owner, const std::string& id);
  Status expire();
  Status erase_row(const std::string& owner, const std::string& id, std::int64_t bytes);

  ResponseStoreOptions options_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::unique_ptr<SqliteDatabase> database_;
  std::int64_t bytes_ = 0;  // sum over all rows
};

}  // namespace tandem::server
