// The CUDA implementation of Kernels: packed weights as stored, all work queued on one stream,
// nothing allocated or waited for after construction, so that a step can be captured in a graph.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/device/device.h"
#include "compute/kernels/kernels.h"

namespace tandem::cuda {

// Scratch memory of make_cuda_kernels. Steps that need more run in several passes with the same
// results; 1M positions with 64 rows fit in the default.
constexpr std::int64_t kScratchBytes = std::int64_t{256} << 20;

// `stream` is the device's cudaStream_t; `device` outlives the result.
// ERRORS: kResourceExhausted.
Result<std::unique_ptr<kernels::Kernels>> make_cuda_kernels(device::Device& device, void* stream,
                                                            kernels::Numerics numerics,
                                                            std::int64_t scratch_bytes);

}  // namespace tandem::cuda
