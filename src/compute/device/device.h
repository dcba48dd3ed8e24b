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

  // The same, for small things that host and device both touch: step inputs, page tables, logits.
  // The host may read and write it whenever no queued work uses it, see synchronize().
  virtual Result<Buffer> allocate_shared(std::int64_t bytes, const std::string& label) {
    return allocate(bytes, label);
  }

  virtual void release(void* data, std::int64_t bytes) = 0;
  // Live allocations summed by label, in order of first use.
  virtual std::vector<MemoryUse> memory() const = 0;

  // Whether the host may touch memory of allocate() itself. If not, upload() and download() do.
  virtual bool host_visible() const { return true; }

  // Kernels and copies are queued in order; this waits until all of them are done. What they wrote
  // is then visible to the host. A fault of the device ends the process here, by name.
  virtual void synchronize() {}

  // Host bytes to device memory and back, in order with what is queued. Host bytes are free again,
  // or complete, on return. May be called from several threads.
  virtual void upload(void* to, const void* from, std::int64_t bytes);
  virtual void download(void* to, const void* from, std::int64_t bytes);

  // Queues a copy of n_rows rows of row_bytes between device or shared memory.
  virtual void copy_rows(void* to, std::int64_t to_stride_bytes, const void* from,
                         std::int64_t from_stride_bytes, std::int64_t row_bytes,
                         std::int64_t n_rows);
};

// Host memory.
std::unique_ptr<Device> make_cpu_device();

}  // namespace tandem::device
