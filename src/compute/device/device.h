// Device and Buffer: who owns memory. Everything large is allocated at start, with a label, so that
// the memory plan can be printed and checked (architecture decision 10).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::device {

class Device;

// Move-only owner of device memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, std::int64_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept;

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

struct MemoryUse {
  std::string label;
  std::int64_t bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Zero-filled memory, 256-byte aligned. ERRORS: kResourceExhausted with the label and the bytes.
  virtual Result<Buffer> allocate(std::int64_t bytes, const std::string& label) = 0;
  virtual void release(void* data, std::int64_t bytes) = 0;
  // Live allocations summed by label, in order of first use.
  virtual std::vector<MemoryUse> memory() const = 0;
};

// Host memory.
std::unique_ptr<Device> make_cpu_device();

}  // namespace tandem::device
