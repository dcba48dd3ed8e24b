#include "compute/cuda/fill.h"

#include "compute/cuda/device_math.h"
#include "compute/cuda/fragments.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 4096;

dim3 blocks(std::int64_t n) {
  const std::int64_t wanted = (n + kThreads - 1) / kThreads;
  return dim3(static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks));
}

__global__ void fill_kernel(FillSpec spec, void* data, std::int64_t n) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride) {
    fill_element(spec, data, i);
  }
}

__global__ void read_kernel(const Words* data, std::int64_t n, std::uint32_t* sink) {
  constexpr int kAhead = 8;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::uint32_t sum = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += kAhead * stride) {
    Words ahead[kAhead];
    TANDEM_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      ahead[j] = i + j * stride < n ? data[i + j * stride] : Words{};
    }
    TANDEM_UNROLL
    for (int j = 0; j < kAhead; ++j) {
      sum += ahead[j].word[0] ^ ahead[j].word[1] ^ ahead[j].word[2] ^ ahead[j].word[3];
    }
  }
  if (sum == 0x12345678U) {  // almost never, and the compiler cannot know
    *sink = sum;
  }
}

}  // namespace

void fill_memory(void* stream, const FillSpec& spec, void* data, std::int64_t n) {
  if (n > 0) {
    launch(fill_kernel, blocks(n), dim3(kThreads), 0, stream, spec, data, n);
  }
}

void read_memory(void* stream, const void* data, std::int64_t n, std::uint32_t* sink) {
  const std::int64_t words = n / static_cast<std::int64_t>(sizeof(Words));
  launch(read_kernel, blocks(words / 8), dim3(kThreads), 0, stream, static_cast<const Words*>(data),
         words, sink);
}

}  // namespace tandem::cuda
