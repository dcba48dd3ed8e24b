#include "model/checkpoint/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tandem::checkpoint {
namespace {

constexpr std::uint64_t kDropStep = std::uint64_t{64} << 20;

std::string errno_text() {
  return std::error_code(errno, std::generic_category()).message();
}

}  // namespace

Result<ReadFile> ReadFile::open(const std::filesystem::path& path) {
  ReadFile file;
  file.path_ = path;
  file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd_ < 0) {
    if (errno == ENOENT) {
      return not_found("{}: no such file (a broken link counts as none)", path.string());
    }
    return unavailable("{}: cannot be opened: {}", path.string(), errno_text());
  }
  struct stat info = {};
  if (::fstat(file.fd_, &info) != 0) {
    return unavailable("{}: {}", path.string(), errno_text());
  }
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument("{}: is not a regular file", path.string());
  }
  file.bytes_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

ReadFile::ReadFile(ReadFile&& other) noexcept {
  *this = std::move(other);
}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  std::swap(sequential_, other.sequential_);
  std::swap(dropped_, other.dropped_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) {
    if (sequential_) {
      drop_behind(bytes_);
    }
    ::close(fd_);
  }
}

Status ReadFile::read_at(std::uint64_t offset, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return unavailable("{}: reading {} bytes at {}: {}", path_.string(), out.size(), offset,
                         errno_text());
    }
    if (n == 0) {
      return data_loss("{}: ends at byte {}, {} bytes at {} were expected", path_.string(),
                       offset + done, out.size(), offset);
    }
    done += static_cast<std::size_t>(n);
  }
  if (sequential_ && offset > dropped_ + kDropStep) {
    drop_behind(offset);
  }
  return ok_status();
}

void ReadFile::expect_sequential() {
  sequential_ = true;
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void ReadFile::drop_behind(std::uint64_t offset) {
  ::posix_fadvise(fd_, static_cast<off_t>(dropped_), static_cast<off_t>(offset - dropped_),
                  POSIX_FADV_DONTNEED);
  dropped_ = offset;
}

}  // namespace tandem::checkpoint
