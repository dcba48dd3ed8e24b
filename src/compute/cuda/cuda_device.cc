#include "compute/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "compute/cuda/available_memory.h"
#include "compute/cuda/cuda_error.h"
#include "compute/cuda/stuck_clock.h"

namespace tandem::cuda {
namespace {

using device::Buffer;
using device::MemoryUse;

constexpr std::size_t kStagingBytes = std::size_t{16} << 20;
constexpr int kStagingParts = 2;

std::string read_meminfo() {
  std::ifstream file("/proc/meminfo");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Result<CudaFacts> facts_of(int ordinal) {
  int n_devices = 0;
  TANDEM_TRY(to_status(cudaGetDeviceCount(&n_devices), "CUDA driver"));
  if (ordinal < 0 || ordinal >= n_devices) {
    return Status(
        StatusCode::kUnavailable,
        fmt::format("GPU {}: this machine has {} GPU(s), numbered from 0", ordinal, n_devices));
  }
  cudaDeviceProp properties{};
  TANDEM_TRY(to_status(cudaGetDeviceProperties(&properties, ordinal), "GPU properties"));
  CudaFacts facts;
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.n_multiprocessors = properties.multiProcessorCount;
  facts.unified = properties.integrated != 0;
  const bool known =
      (facts.major == 9 && facts.minor == 0) || (facts.major == 12 && facts.minor == 1);
  if (!known) {
    return Status(
        StatusCode::kUnavailable,
        fmt::format("GPU {} is {} with compute capability {}.{}; this build has kernels for "
                    "9.0 (H200) and 12.1 (GB10)",
                    ordinal, facts.name, facts.major, facts.minor));
  }
  return facts;
}

class Gpu final : public CudaDevice {
 public:
  explicit Gpu(CudaFacts facts) : facts_(std::move(facts)) {}

  ~Gpu() override {
    for (int i = 0; i < kStagingParts; ++i) {
      if (staged_[i] != nullptr) {
        cudaEventDestroy(staged_[i]);
      }
    }
    if (staging_ != nullptr) {
      cudaFreeHost(staging_);
    }
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
  }

  Status start(int ordinal) {
    ordinal_ = ordinal;
    TANDEM_TRY(to_status(cudaSetDevice(ordinal), "choosing the GPU"));
    TANDEM_TRY(to_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"));
    TANDEM_TRY(
        to_status(cudaHostAlloc(&staging_, kStagingParts * kStagingBytes, cudaHostAllocDefault),
                  "pinned staging memory"));
    for (cudaEvent_t& event : staged_) {
      TANDEM_TRY(to_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "event"));
    }
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    TANDEM_TRY(to_status(cudaMemGetInfo(&free_bytes, &total_bytes), "memory of the GPU"));
    facts_.total_bytes = static_cast<std::int64_t>(total_bytes);
    facts_.available_bytes =
        available_memory(facts_.unified, static_cast<std::int64_t>(free_bytes), read_meminfo());
    return ok_status();
  }

  std::string name() const override { return facts_.name; }
  void* stream() const override { return stream_; }
  const CudaFacts& facts() const override { return facts_; }
  bool host_visible() const override { return false; }

  Result<Buffer> allocate(std::int64_t bytes, const std::string& label) override {
    return take(bytes, label, false);
  }

  Result<Buffer> allocate_shared(std::int64_t bytes, const std::string& label) override {
    return take(bytes, label, true);
  }

  void release(void* data, std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = allocations_.find(data);
    TANDEM_CHECK(found != allocations_.end(), "memory that this GPU did not give");
    require(found->second.shared ? cudaFreeHost(data) : cudaFree(data),
            "releasing " + found->second.label);
    add(found->second.label, -bytes);
    allocations_.erase(found);
  }

  std::vector<MemoryUse> memory() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return uses_;
  }

  void set_watch(std::chrono::milliseconds limit, std::function<std::int64_t()> progress,
                 std::function<void()> on_stuck) override {
    limit_ = limit;
    progress_ = std::move(progress);
    on_stuck_ = std::move(on_stuck);
  }

  // With a watch the host asks again and again, without a pause while a step may end any moment.
  void synchronize() override {
    if (!on_stuck_) {
      require(cudaStreamSynchronize(stream_), "step on the GPU");
      return;
    }
    constexpr std::chrono::milliseconds kBusy{200};
    constexpr std::chrono::microseconds kPause{50};
    const auto begin = std::chrono::steady_clock::now();
    StuckClock clock(limit_, begin, progress_());
    while (true) {
      const cudaError_t error = cudaStreamQuery(stream_);
      if (error != cudaErrorNotReady) {
        require(error, "step on the GPU");
        return;
      }
      const auto now = std::chrono::steady_clock::now();
      if (clock.expired(now, progress_())) {
        on_stuck_();
      }
      if (now - begin > kBusy) {
        std::this_thread::sleep_for(kPause);
      }
    }
  }

  // Two pinned parts in turn: one fills while the other is on its way.
  void upload(void* to, const void* from, std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(staging_mutex_);
    for (std::int64_t done = 0; done < bytes;) {
      const auto size = std::min(kStagingBytes, static_cast<std::size_t>(bytes - done));
      auto* part = static_cast<std::uint8_t*>(staging_) + next_part_ * kStagingBytes;
      require(cudaEventSynchronize(staged_[next_part_]), "upload");
      std::memcpy(part, static_cast<const std::uint8_t*>(from) + done, size);
      require(cudaMemcpyAsync(static_cast<std::uint8_t*>(to) + done, part, size,
                              cudaMemcpyHostToDevice, stream_),
              "upload");
      require(cudaEventRecord(staged_[next_part_], stream_), "upload");
      next_part_ = (next_part_ + 1) % kStagingParts;
      done += static_cast<std::int64_t>(size);
    }
  }

  void download(void* to, const void* from, std::int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(staging_mutex_);
    require(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
        "download");
    require(cudaStreamSynchronize(stream_), "download");
  }

  void copy_rows(void* to, std::int64_t to_stride_bytes, const void* from,
                 std::int64_t from_stride_bytes, std::int64_t row_bytes,
                 std::int64_t n_rows) override {
    require(cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_stride_bytes), from,
                              static_cast<std::size_t>(from_stride_bytes),
                              static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(n_rows),
                              cudaMemcpyDefault, stream_),
            "copy");
  }

 private:
  struct Allocation {
    std::string label;
    bool shared = false;
  };

  Result<Buffer> take(std::int64_t bytes, const std::string& label, bool shared) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 256));
    void* data = nullptr;
    TANDEM_TRY(to_status(cudaSetDevice(ordinal_), "choosing the GPU"));  // per thread
    const cudaError_t error =
        shared ? cudaHostAlloc(&data, size, cudaHostAllocMapped) : cudaMalloc(&data, size);
    TANDEM_TRY(to_status(error, fmt::format("{}: {} bytes on {}", label, bytes, facts_.name)));
    if (shared) {
      std::memset(data, 0, size);
    } else {
      TANDEM_TRY(to_status(cudaMemsetAsync(data, 0, size, stream_), label));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    allocations_[data] = {label, shared};
    add(label, bytes);
    return Buffer(this, data, bytes);
  }

  void add(const std::string& label, std::int64_t bytes) {
    for (MemoryUse& use : uses_) {
      if (use.label == label) {
        use.bytes += bytes;
        return;
      }
    }
    uses_.push_back({label, bytes});
  }

  CudaFacts facts_;
  int ordinal_ = 0;
  cudaStream_t stream_ = nullptr;
  void* staging_ = nullptr;
  cudaEvent_t staged_[kStagingParts] = {};
  int next_part_ = 0;
  std::chrono::milliseconds limit_{0};
  std::function<std::int64_t()> progress_;
  std::function<void()> on_stuck_;
  std::mutex staging_mutex_;
  mutable std::mutex mutex_;
  std::map<void*, Allocation> allocations_;
  std::vector<MemoryUse> uses_;
};

}  // namespace

Result<std::unique_ptr<CudaDevice>> make_cuda_device(int ordinal) {
  TANDEM_ASSIGN(CudaFacts facts, facts_of(ordinal));
  auto gpu = std::make_unique<Gpu>(std::move(facts));
  TANDEM_TRY(gpu->start(ordinal));
  return std::unique_ptr<CudaDevice>(std::move(gpu));
}

}  // namespace tandem::cuda
