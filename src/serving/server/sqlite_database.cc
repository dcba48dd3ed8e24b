#include "serving/server/sqlite_database.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tandem::server {

SqliteStatement& SqliteStatement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

SqliteStatement& SqliteStatement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
  return *this;
}

Result<bool> SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW || code == SQLITE_DONE) {
    return code == SQLITE_ROW;
  }
  return database_->error(code);
}

std::string_view SqliteStatement::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(reinterpret_cast<const char*>(bytes),
                                             static_cast<std::size_t>(size));
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

Result<std::unique_ptr<SqliteDatabase>> SqliteDatabase::open(const std::filesystem::path& path) {
  if (path.empty()) {
    return connect(":memory:");
  }
  // Created by us first, so that neither the file nor its journal is readable by others.
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {
    return permission_denied("cannot create or open {}: {}", path.string(), std::strerror(errno));
  }
  ::close(file);
  return connect(path);
}

Result<std::unique_ptr<SqliteDatabase>> SqliteDatabase::connect(const std::filesystem::path& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(path, handle));
  if (code != SQLITE_OK) {
    return database->error(code);
  }
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

Status SqliteDatabase::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? ok_status() : error(code);
}

Result<SqliteStatement> SqliteDatabase::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) {
    return error(code);
  }
  return SqliteStatement(*this, statement);
}

Status SqliteDatabase::error(int code) const {
  const std::string file = path_.string();
  const char* const reason = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  switch (code & 0xFF) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return data_loss("{} is damaged ({}); move it away and start again: a new one is made", file,
                       reason);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unavailable(
          "{} is locked ({}); another server uses it: stop that one or give this one "
          "another folder",
          file, reason);
    case SQLITE_FULL:
      return resource_exhausted("no space left for {} ({}); free some disk space", file, reason);
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return permission_denied("cannot write {} ({}); check its owner and folder", file, reason);
    default:
      return unavailable("{}: {}", file, reason);
  }
}

Result<SqliteTransaction> SqliteTransaction::begin(SqliteDatabase& database) {
  TANDEM_TRY(database.run("BEGIN IMMEDIATE"));
  return SqliteTransaction(database);
}

SqliteTransaction::SqliteTransaction(SqliteTransaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

SqliteTransaction::~SqliteTransaction() {
  if (database_ != nullptr) {
    (void)database_->run("ROLLBACK");
  }
}

Status SqliteTransaction::commit() {
  TANDEM_TRY(database_->run("COMMIT"));
  database_ = nullptr;
  return ok_status();
}

}  // namespace tandem::server
