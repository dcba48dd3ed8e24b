// Kernels of compute/cuda on this machine's GPU. All heap memory of this program lies in one arena
// that is registered with the GPU, which then reads and writes it in place: the tests' vectors are
// also device memory. Launches block in this program, so an op has finished when its call returns.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>

#include "compute/cuda/cuda_backend.h"
#include "foundation/base/check.h"
#include "tests/parity/subject.h"

namespace {

constexpr std::size_t kArenaBytes = std::size_t{512} << 20;
constexpr std::size_t kHeaderBytes = 256;  // keeps the alignment of device memory
constexpr std::size_t kClasses = 32;

// Blocks of powers of two with a free list each. Uses no memory of its own: it is what operator new
// stands on.
class Arena {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t size_class = class_of(bytes + kHeaderBytes);
    Header* block = free_[size_class];
    if (block != nullptr) {
      free_[size_class] = block->next;
    } else {
      block = carve(std::size_t{1} << size_class);
    }
    block->size_class = size_class;
    return reinterpret_cast<unsigned char*>(block) + kHeaderBytes;
  }

  void give(void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto* block = reinterpret_cast<Header*>(static_cast<unsigned char*>(data) - kHeaderBytes);
    block->next = free_[block->size_class];
    free_[block->size_class] = block;
  }

  void* base() { return base_; }

 private:
  struct Header {
    Header* next;
    std::size_t size_class;
  };

  static std::size_t class_of(std::size_t bytes) {
    std::size_t size_class = 9;
    while ((std::size_t{1} << size_class) < bytes) {
      ++size_class;
    }
    return size_class;
  }

  Header* carve(std::size_t bytes) {
    if (base_ == nullptr) {
      void* data =
          ::mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      base_ = data == MAP_FAILED ? nullptr : static_cast<unsigned char*>(data);
    }
    if (base_ == nullptr || used_ + bytes > kArenaBytes) {
      std::abort();  // the tests' inputs are far smaller
    }
    auto* block = reinterpret_cast<Header*>(base_ + used_);
    used_ += bytes;
    return block;
  }

  std::mutex mutex_;
  unsigned char* base_ = nullptr;
  std::size_t used_ = 0;
  Header* free_[kClasses] = {};
};

Arena& arena() {
  static Arena instance;
  return instance;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return arena().take(bytes);
}

void operator delete(void* data) noexcept {
  if (data != nullptr) {
    arena().give(data);
  }
}

void operator delete(void* data, std::size_t) noexcept {
  operator delete(data);
}

namespace tandem::parity {
namespace {

cuda::CudaBackend& backend() {
  static const std::unique_ptr<cuda::CudaBackend> opened = [] {
    ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);  // read by the driver when it starts, just below
    auto result = cuda::open_cuda_backend({});
    TANDEM_CHECK(result.ok(), result.status().message());
    const cudaError_t error = cudaHostRegister(arena().base(), kArenaBytes,
                                               cudaHostRegisterMapped | cudaHostRegisterPortable);
    TANDEM_CHECK(error == cudaSuccess, cudaGetErrorString(error));
    void* on_device = nullptr;
    TANDEM_CHECK(cudaHostGetDevicePointer(&on_device, arena().base(), 0) == cudaSuccess &&
                     on_device == arena().base(),
                 "this GPU sees host memory at other addresses");
    return std::move(result).value();
  }();
  return *opened;
}

}  // namespace

std::unique_ptr<kernels::Kernels> make_subject(kernels::Numerics numerics, int) {
  constexpr std::int64_t kScratch = std::int64_t{4} << 20;  // large steps run in several passes
  return cuda::make_cuda_kernels(backend().device(), backend().stream(), numerics, kScratch)
      .value();
}

std::vector<int> thread_counts() {
  return {1};
}

}  // namespace tandem::parity
