// SqliteDatabase: one connection to one SQLite file, errors as Status. Not thread-safe.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace tandem::server {

class SqliteDatabase;

// A prepared statement: bind, then step, then read.
class SqliteStatement {
 public:
  // Parameters count from 1.
  SqliteStatement& bind(int index, std::string_view text);
  SqliteStatement& bind(int index, std::int64_t number);

  // Whether there is a row. A statement without rows is done after one step.
  Result<bool> step();

  // Columns count from 0. Valid until the next step.
  std::string_view text(int column) const;
  std::int64_t number(int column) const;

 private:
  friend class SqliteDatabase;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  SqliteStatement(const SqliteDatabase& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  const SqliteDatabase* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteDatabase {
 public:
  // Opens or creates the file, readable only by its owner. An empty path: a database in memory.
  // ERRORS: kDataLoss (no database), kUnavailable (locked, disk), kPermissionDenied.
  static Result<std::unique_ptr<SqliteDatabase>> open(const std::filesystem::path& path);

  // Runs statements without parameters and results.
  Status run(const std::string& sql);

  Result<SqliteStatement> prepare(std::string_view sql);

  // What SQLite says about the last call, as an error that names the file.
  Status error(int code) const;

  // Rows changed by the last statement.
  std::int64_t changes() const { return sqlite3_changes(handle_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  static Result<std::unique_ptr<SqliteDatabase>> connect(const std::filesystem::path& path);
  SqliteDatabase(std::filesystem::path path, sqlite3* handle)
      : path_(std::move(path)), handle_(handle) {}

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// BEGIN ... COMMIT; rolls back if it is destroyed before commit().
class SqliteTransaction {
 public:
  static Result<SqliteTransaction> begin(SqliteDatabase& database);
  SqliteTransaction(SqliteTransaction&& other) noexcept;
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;
  ~SqliteTransaction();

  Status commit();

 private:
  explicit SqliteTransaction(SqliteDatabase& database) : database_(&database) {}

  SqliteDatabase* database_;  // nullptr: nothing to roll back
};

}  // namespace tandem::server
