// ReadFile: one open file, read at offsets. Weights are read once, so the page cache is told not to
// keep what was read: on unified memory it would compete with the weights themselves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "foundation/base/status.h"

namespace tandem::checkpoint {

class ReadFile {
 public:
  // ERRORS: kNotFound, kUnavailable; kInvalidArgument for anything but a regular file.
  static Result<ReadFile> open(const std::filesystem::path& path);

  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;
  ~ReadFile();

  std::uint64_t bytes() const { return bytes_; }

  // ERRORS: kDataLoss if the file ends before; kUnavailable.
  Status read_at(std::uint64_t offset, std::span<std::uint8_t> out);

  // The file will be read from front to back, once.
  void expect_sequential();

 private:
  ReadFile() = default;
  void drop_behind(std::uint64_t offset);

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  bool sequential_ = false;
  std::uint64_t dropped_ = 0;  // bytes that the page cache was told to forget
};

}  // namespace tandem::checkpoint
