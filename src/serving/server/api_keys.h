// ApiKeys: named keys from a file. A line is `NAME KEY [rpm=N] [tpm=N]`; # starts a comment. Keys
// are kept as digests, compared in constant time, and never logged: logs name the key's owner.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::server {

struct KeyOwner {
  std::string name;
  std::int64_t requests_per_minute = 0;  // 0: no limit
  std::int64_t tokens_per_minute = 0;    // 0: no limit
};

class ApiKeys {
 public:
  // An empty path means that no key is asked for.
  // ERRORS: kNotFound, kInvalidArgument naming the line.
  static Result<std::unique_ptr<ApiKeys>> load(const std::string& path);

  bool required() const { return !path_.empty(); }

  // The owner of a key; nothing if nobody has it. Thread-safe.
  std::optional<KeyOwner> find(std::string_view key) const;

  // Reads the file again if it has changed; a bad file keeps the old keys and is reported once.
  void refresh();

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest;
    KeyOwner owner;
  };

  explicit ApiKeys(std::string path) : path_(std::move(path)) {}
  static Digest digest_of(std::string_view key);
  Result<std::vector<Entry>> read() const;

  std::string path_;
  std::filesystem::file_time_type read_time_{};
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tandem::server
