#include "model/checkpoint/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/checkpoint/safetensors.h"

namespace tandem::checkpoint {
namespace {

Status write_error(const std::filesystem::path& path) {
  return unavailable("{}: cannot be written: {}", path.string(),
                     std::error_code(errno, std::generic_category()).message());
}

Status write_all(int fd, const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return write_error(path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return ok_status();
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

int create_file(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

}  // namespace

Result<ShardWriter> ShardWriter::create(const std::filesystem::path& path,
                                        const std::vector<const TensorSpec*>& tensors) {
  std::vector<ShardTensor> entries;
  std::uint64_t at = 0;
  for (const TensorSpec* spec : tensors) {
    ShardTensor entry;
    entry.name = spec->name;
    entry.dtype_word = std::string(tensor::dtype_name(spec->dtype));
    entry.shape = spec->shape;
    entry.begin = at;
    at += static_cast<std::uint64_t>(spec->bytes());
    entry.end = at;
    entries.push_back(std::move(entry));
  }
  ShardWriter writer;
  writer.path_ = path;
  writer.expected_bytes_ = static_cast<std::int64_t>(at);
  writer.fd_ = create_file(path);
  if (writer.fd_ < 0) {
    return write_error(path);
  }
  TANDEM_TRY(write_all(writer.fd_, path, bytes_of(write_header(entries))));
  return writer;
}

ShardWriter::ShardWriter(ShardWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      expected_bytes_(other.expected_bytes_),
      written_bytes_(other.written_bytes_) {}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Status ShardWriter::append(std::span<const std::uint8_t> bytes) {
  written_bytes_ += static_cast<std::int64_t>(bytes.size());
  return write_all(fd_, path_, bytes);
}

Status ShardWriter::close() {
  if (written_bytes_ != expected_bytes_) {
    return internal_error("{}: {} bytes of data written, the header promises {}", path_.string(),
                          written_bytes_, expected_bytes_);
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    return write_error(path_);
  }
  return ok_status();
}

Status write_text_file(const std::filesystem::path& path, std::string_view text) {
  const int fd = create_file(path);
  if (fd < 0) {
    return write_error(path);
  }
  const Status status = write_all(fd, path, bytes_of(text));
  if (::close(fd) != 0 && status.ok()) {
    return write_error(path);
  }
  return status;
}

}  // namespace tandem::checkpoint
