#include "compute/cuda/emulation/guarded_device.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compute/cuda/emulation/emulation.h"
#include "foundation/base/check.h"

namespace tandem::cuda::emulation {
namespace {

class GuardedDevice final : public device::Device {
 public:
  explicit GuardedDevice(std::int64_t bytes) : bytes_(bytes) {
    void* data = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TANDEM_CHECK(data != MAP_FAILED, "no room for the guarded device");
    data_ = static_cast<std::uint8_t*>(data);
    add_launch_hook(this, [this] { open(); });
  }

  ~GuardedDevice() override {
    remove_launch_hook(this);
    ::munmap(data_, static_cast<std::size_t>(bytes_));
  }

  std::string name() const override { return "guarded"; }
  bool host_visible() const override { return false; }

  Result<device::Buffer> allocate(std::int64_t bytes, const std::string& label) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::int64_t size = (bytes + 255) / 256 * 256;
    if (used_ + size > bytes_) {
      return resource_exhausted("{}: {} bytes, the guarded device has {} left", label, bytes,
                                bytes_ - used_);
    }
    close();
    device::Buffer buffer(this, data_ + used_, bytes);
    used_ += size;
    return buffer;
  }

  Result<device::Buffer> allocate_shared(std::int64_t bytes, const std::string& label) override {
    TANDEM_ASSIGN(device::Buffer buffer, shared_->allocate(bytes, label));
    return buffer;
  }

  void release(void*, std::int64_t) override {}
  std::vector<device::MemoryUse> memory() const override { return {{"guarded", used_}}; }

  void synchronize() override {
    TANDEM_CHECK(recording() == nullptr, "a step waits while it is recorded");
    const std::lock_guard<std::mutex> lock(mutex_);
    close();
  }

  void upload(void* to, const void* from, std::int64_t bytes) override {
    TANDEM_CHECK(recording() == nullptr, "a step uploads while it is recorded");
    open();
    device::Device::upload(to, from, bytes);
  }

  void download(void* to, const void* from, std::int64_t bytes) override {
    TANDEM_CHECK(recording() == nullptr, "a step downloads while it is recorded");
    open();
    device::Device::download(to, from, bytes);
  }

  void copy_rows(void* to, std::int64_t to_stride_bytes, const void* from,
                 std::int64_t from_stride_bytes, std::int64_t row_bytes,
                 std::int64_t n_rows) override {
    if (recording() != nullptr) {
      recording()->push_back([=, this] {
        copy_rows(to, to_stride_bytes, from, from_stride_bytes, row_bytes, n_rows);
      });
      return;
    }
    open();
    device::Device::copy_rows(to, to_stride_bytes, from, from_stride_bytes, row_bytes, n_rows);
  }

 private:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    protect(true);
  }

  void close() { protect(false); }

  // Only what was given and only on a change: each call touches every page.
  void protect(bool open) {
    constexpr std::int64_t kPage = 4096;
    const std::int64_t size = (used_ + kPage - 1) / kPage * kPage;
    if (size == 0 || open == is_open_) {
      return;
    }
    is_open_ = open;
    TANDEM_CHECK(::mprotect(data_, static_cast<std::size_t>(size),
                            open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0,
                 "mprotect");
  }

  bool is_open_ = false;
  std::int64_t bytes_;
  std::uint8_t* data_ = nullptr;
  std::int64_t used_ = 0;
  std::mutex mutex_;
  std::unique_ptr<device::Device> shared_ = device::make_cpu_device();
};

}  // namespace

namespace {

class ListedGraph final : public device::GraphRecorder::Graph {
 public:
  explicit ListedGraph(Recording work) : work_(std::move(work)) {}

  Status replay() override {
    for (const auto& item : work_) {
      item();
    }
    return ok_status();
  }

 private:
  Recording work_;
};

class ListRecorder final : public device::GraphRecorder {
 public:
  Result<std::unique_ptr<Graph>> record(const std::function<void()>& queue_work) override {
    Recording work;
    set_recording(&work);
    queue_work();
    set_recording(nullptr);
    return std::unique_ptr<Graph>(std::make_unique<ListedGraph>(std::move(work)));
  }
};

}  // namespace

std::unique_ptr<device::GraphRecorder> make_list_recorder() {
  return std::make_unique<ListRecorder>();
}

std::unique_ptr<device::Device> make_guarded_device(std::int64_t bytes) {
  return std::make_unique<GuardedDevice>(bytes);
}

}  // namespace tandem::cuda::emulation
