#include "compute/device/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace tandem::device {

Buffer::~Buffer() {
  if (device_ != nullptr && data_ != nullptr) {
    device_->release(data_, bytes_);
  }
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

void Device::upload(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void Device::download(void* to, const void* from, std::int64_t bytes) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void Device::copy_rows(void* to, std::int64_t to_stride_bytes, const void* from,
                       std::int64_t from_stride_bytes, std::int64_t row_bytes,
                       std::int64_t n_rows) {
  for (std::int64_t row = 0; row < n_rows; ++row) {
    std::memcpy(static_cast<std::uint8_t*>(to) + row * to_stride_bytes,
                static_cast<const std::uint8_t*>(from) + row * from_stride_bytes,
                static_cast<std::size_t>(row_bytes));
  }
}

namespace {

// From here on memory comes from the system in whole pages. They are zero without being written, so
// a load writes its weights once, and huge pages save most TLB misses of reading them.
constexpr std::int64_t kMapBytes = std::int64_t{4} << 20;

std::size_t rounded(std::int64_t bytes) {
  constexpr std::size_t kAlignment = 256;
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  return (wanted + kAlignment - 1) / kAlignment * kAlignment;
}

void* allocate_zeroed(std::int64_t bytes) {
  const std::size_t size = rounded(bytes);
  if (bytes >= kMapBytes) {
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return nullptr;
    }
    ::madvise(data, size, MADV_HUGEPAGE);
    return data;
  }
  void* data = std::aligned_alloc(256, size);
  if (data != nullptr) {
    std::memset(data, 0, size);
  }
  return data;
}

void free_zeroed(void* data, std::int64_t bytes) {
  if (bytes >= kMapBytes) {
    ::munmap(data, rounded(bytes));
  } else {
    std::free(data);
  }
}

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }

  Result<Buffer> allocate(std::int64_t bytes, const std::string& label) override {
    void* data = allocate_zeroed(bytes);
    if (data == nullptr) {
      return resource_exhausted(
          "{}: the system refused {} bytes; lower the memory plan or free memory", label, bytes);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    labels_[data] = label;
    add(label, bytes);
    return Buffer(this, data, bytes);
  }

  void release(void* data, std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    add(labels_[data], -bytes);
    labels_.erase(data);
    free_zeroed(data, bytes);
  }

  std::vector<MemoryUse> memory() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return uses_;
  }

 private:
  void add(const std::string& label, std::int64_t bytes) {
    for (MemoryUse& use : uses_) {
      if (use.label == label) {
        use.bytes += bytes;
        return;
      }
    }
    uses_.push_back({label, bytes});
  }

  mutable std::mutex mutex_;
  std::map<void*, std::string> labels_;
  std::vector<MemoryUse> uses_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace tandem::device
