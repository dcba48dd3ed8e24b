#include "serving/server/response_store.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::server {
namespace {

constexpr std::int64_t kSchemaVersion = 1;

// EXCLUSIVE keeps a second server away from the same file; secure_delete leaves no text behind in
// free pages; with WAL, synchronous NORMAL loses nothing when the process dies.
constexpr const char* kPragmas =
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA secure_delete=ON;"
    "PRAGMA foreign_keys=ON;";

constexpr const char* kSchema =
    "CREATE TABLE responses(owner TEXT NOT NULL, id TEXT NOT NULL, previous TEXT NOT NULL,"
    "  used INTEGER NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL, input TEXT NOT NULL,"
    "  output TEXT NOT NULL, PRIMARY KEY(owner, id));"
    "CREATE INDEX responses_used ON responses(used);"
    "CREATE TABLE items(owner TEXT NOT NULL, id TEXT NOT NULL, response TEXT NOT NULL,"
    "  PRIMARY KEY(owner, id),"
    "  FOREIGN KEY(owner, response) REFERENCES responses(owner, id) ON DELETE CASCADE);"
    "CREATE INDEX items_response ON items(owner, response);"
    "PRAGMA user_version=1;";

std::string text_member(const json::Object& object, std::string_view key) {
  const json::Value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

Status no_response(const std::string& id) {
  return not_found(
      "no response '{}' is stored (unknown, deleted, expired, or made with store: "
      "false)",
      id);
}

Result<json::Array> parse_array(std::string_view text) {
  TANDEM_ASSIGN(json::Value value, json::parse(text));
  if (!value.is_array()) {
    return data_loss("a stored list of items is {}", json::type_name(value));
  }
  return std::move(value.get_array());
}

}  // namespace

ResponseStore::ResponseStore(ResponseStoreOptions options, const Clock& clock,
                             std::unique_ptr<SqliteDatabase> database)
    : options_(std::move(options)), clock_(clock), database_(std::move(database)) {}

Result<std::unique_ptr<ResponseStore>> ResponseStore::open(ResponseStoreOptions options,
                                                           const Clock& clock) {
  std::error_code error;
  if (!options.file.empty()) {
    std::filesystem::create_directories(options.file.parent_path(), error);
  }
  TANDEM_ASSIGN(std::unique_ptr<SqliteDatabase> database, SqliteDatabase::open(options.file));
  std::unique_ptr<ResponseStore> store(
      new ResponseStore(std::move(options), clock, std::move(database)));
  const Status status = store->prepare_schema();
  if (!status.ok()) {
    return status.with_context("response store");
  }
  return store;
}

Status ResponseStore::prepare_schema() {
  TANDEM_TRY(database_->run(kPragmas));
  TANDEM_ASSIGN(SqliteStatement version, database_->prepare("PRAGMA user_version"));
  TANDEM_TRY(version.step().status());
  const std::int64_t found = version.number(0);
  if (found == 0) {
    TANDEM_ASSIGN(SqliteTransaction transaction, SqliteTransaction::begin(*database_));
    TANDEM_TRY(database_->run(kSchema));
    TANDEM_TRY(transaction.commit());
  } else if (found != kSchemaVersion) {
    return failed_precondition(
        "{} has format {}, this version reads format {}; move it away or use "
        "the version that wrote it",
        options_.file.string(), found, kSchemaVersion);
  }
  TANDEM_ASSIGN(SqliteStatement sum,
                database_->prepare("SELECT coalesce(sum(bytes), 0) FROM responses"));
  TANDEM_TRY(sum.step().status());
  bytes_ = sum.number(0);
  return expire();
}

Status ResponseStore::put(const std::string& owner, const json::Object& response,
                          const json::Array& input) {
  const std::lock_guard lock(mutex_);
  TANDEM_ASSIGN(SqliteTransaction transaction, SqliteTransaction::begin(*database_));
  const std::int64_t bytes_before = bytes_;
  Status status = insert(owner, response, input);
  if (status.ok()) {
    status = transaction.commit();
  }
  if (!status.ok()) {
    bytes_ = bytes_before;
    return status;
  }
  return expire();
}

Status ResponseStore::insert(const std::string& owner, const json::Object& response,
                             const json::Array& input) {
  const std::string id = text_member(response, "id");
  const std::string previous = text_member(response, "previous_response_id");
  const json::Array& output = response.at("output").get_array();
  json::Object body = response;
  body["output"] = json::Array();
  const std::string texts[] = {json::dump(body), json::dump(input), json::dump(output)};
  const auto bytes = static_cast<std::int64_t>(texts[0].size() + texts[1].size() + texts[2].size());
  TANDEM_ASSIGN(SqliteStatement row,
                database_->prepare("INSERT INTO responses(owner, id, previous, used, bytes, body,"
                                   " input, output) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"));
  row.bind(1, owner).bind(2, id).bind(3, previous).bind(4, clock_.unix_seconds()).bind(5, bytes);
  row.bind(6, texts[0]).bind(7, texts[1]).bind(8, texts[2]);
  TANDEM_TRY(row.step().status());
  bytes_ += bytes;
  TANDEM_TRY(insert_items(owner, id, input));
  TANDEM_TRY(insert_items(owner, id, output));
  return touch_chain(owner, previous);
}

// An id that a client uses again names the newest item.
Status ResponseStore::insert_items(const std::string& owner, const std::string& id,
                                   const json::Array& items) {
  for (const json::Value& item : items) {
    const std::string item_id = item.is_object() ? text_member(item.get_object(), "id") : "";
    if (item_id.empty()) {
      continue;
    }
    TANDEM_ASSIGN(SqliteStatement row,
                  database_->prepare("INSERT OR REPLACE INTO items VALUES(?, ?, ?)"));
    row.bind(1, owner).bind(2, item_id).bind(3, id);
    TANDEM_TRY(row.step().status());
  }
  return ok_status();
}

Status ResponseStore::touch_chain(const std::string& owner, const std::string& id) {
  if (id.empty()) {
    return ok_status();
  }
  TANDEM_ASSIGN(SqliteStatement update,
                database_->prepare(
                    "WITH RECURSIVE chain(id) AS (SELECT ?2 UNION SELECT previous FROM responses"
                    " JOIN chain USING(id) WHERE owner = ?1 AND previous <> '')"
                    " UPDATE responses SET used = ?3 WHERE owner = ?1 AND id IN chain"));
  update.bind(1, owner).bind(2, id).bind(3, clock_.unix_seconds());
  return update.step().status();
}

Status ResponseStore::expire() {
  const std::int64_t oldest = clock_.unix_seconds() - options_.max_age_s;
  while (true) {
    TANDEM_ASSIGN(SqliteStatement first,
                  database_->prepare("SELECT owner, id, bytes, used FROM responses"
                                     " ORDER BY used, rowid LIMIT 1"));
    TANDEM_ASSIGN(const bool found, first.step());
    if (!found || (first.number(3) >= oldest && bytes_ <= options_.max_bytes)) {
      return ok_status();
    }
    const std::string owner(first.text(0));
    const std::string id(first.text(1));
    TANDEM_TRY(erase_row(owner, id, first.number(2)));
  }
}

Status ResponseStore::erase_row(const std::string& owner, const std::string& id,
                                std::int64_t bytes) {
  TANDEM_ASSIGN(SqliteStatement row,
                database_->prepare("DELETE FROM responses WHERE owner = ? AND id = ?"));
  row.bind(1, owner).bind(2, id);
  TANDEM_TRY(row.step().status());
  bytes_ -= bytes;
  return ok_status();
}

Result<json::Object> ResponseStore::get(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  TANDEM_ASSIGN(
      SqliteStatement row,
      database_->prepare("SELECT body, output FROM responses WHERE owner = ? AND id = ?"));
  row.bind(1, owner).bind(2, id);
  TANDEM_ASSIGN(const bool found, row.step());
  if (!found) {
    return no_response(id);
  }
  TANDEM_ASSIGN(json::Value body, json::parse(row.text(0)));
  TANDEM_ASSIGN(json::Array output, parse_array(row.text(1)));
  json::Object& object = body.as_object();
  object["output"] = std::move(output);
  return std::move(object);
}

Result<json::Array> ResponseStore::input_items(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  TANDEM_ASSIGN(SqliteStatement row,
                database_->prepare("SELECT input FROM responses WHERE owner = ? AND id = ?"));
  row.bind(1, owner).bind(2, id);
  TANDEM_ASSIGN(const bool found, row.step());
  if (!found) {
    return no_response(id);
  }
  return parse_array(row.text(0));
}

Result<json::Array> ResponseStore::history(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::vector<json::Array> newest_first;
  for (std::string at = id; !at.empty();) {
    TANDEM_ASSIGN(SqliteStatement row,
                  database_->prepare("SELECT previous, input, output FROM responses"
                                     " WHERE owner = ? AND id = ?"));
    row.bind(1, owner).bind(2, at);
    TANDEM_ASSIGN(const bool found, row.step());
    if (!found) {
      return no_response(at);
    }
    TANDEM_ASSIGN(json::Array items, parse_array(row.text(1)));
    TANDEM_ASSIGN(json::Array output, parse_array(row.text(2)));
    items.insert(items.end(), output.begin(), output.end());
    newest_first.push_back(std::move(items));
    at = std::string(row.text(0));
  }
  json::Array out;
  for (auto items = newest_first.rbegin(); items != newest_first.rend(); ++items) {
    out.insert(out.end(), items->begin(), items->end());
  }
  return out;
}

Result<json::Value> ResponseStore::item(const std::string& owner, const std::string& item_id) {
  const std::lock_guard lock(mutex_);
  TANDEM_ASSIGN(SqliteStatement row,
                database_->prepare("SELECT r.input, r.output FROM items i JOIN responses r"
                                   " ON r.owner = i.owner AND r.id = i.response"
                                   " WHERE i.owner = ? AND i.id = ?"));
  row.bind(1, owner).bind(2, item_id);
  TANDEM_ASSIGN(const bool found, row.step());
  for (int column = 0; found && column < 2; ++column) {
    TANDEM_ASSIGN(const json::Array items, parse_array(row.text(column)));
    for (const json::Value& item : items) {
      if (item.is_object() && text_member(item.get_object(), "id") == item_id) {
        return item;
      }
    }
  }
  return not_found("no item '{}' is stored", item_id);
}

Status ResponseStore::erase(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  TANDEM_ASSIGN(SqliteStatement row,
                database_->prepare("SELECT bytes FROM responses WHERE owner = ? AND id = ?"));
  row.bind(1, owner).bind(2, id);
  TANDEM_ASSIGN(const bool found, row.step());
  if (!found) {
    return no_response(id);
  }
  const std::int64_t bytes = row.number(0);
  return erase_row(owner, id, bytes);
}

std::int64_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace tandem::server
