#include "compute/device/device.h"

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

namespace {

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }

  Result<Buffer> allocate(std::int64_t bytes, const std::string& label) override {
    constexpr std::size_t kAlignment = 256;
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    const std::size_t size = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, size);
    if (data == nullptr) {
      return resource_exhausted(
          "{}: the system refused {} bytes; lower the memory plan or free memory", label, size);
    }
    std::memset(data, 0, size);
    const std::lock_guard<std::mutex> lock(mutex_);
    labels_[data] = label;
    add(label, bytes);
    return Buffer(this, data, bytes);
  }

  void release(void* data, std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    add(labels_[data], -bytes);
    labels_.erase(data);
    std::free(data);
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
