// Errors of the CUDA runtime as Status, or as the end of the process where work is lost.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "foundation/base/check.h"
#include "foundation/base/status.h"

namespace tandem::cuda {

inline Status to_status(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) {
    return ok_status();
  }
  cudaGetLastError();  // it would be reported again by the next launch
  const StatusCode code = error == cudaErrorMemoryAllocation ? StatusCode::kResourceExhausted
                                                             : StatusCode::kUnavailable;
  return Status(code,
                what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

// A device that faulted takes its memory with it: the rank ends with the fault's name.
inline void require(cudaError_t error, const std::string& what) {
  TANDEM_CHECK(error == cudaSuccess,
               what + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

}  // namespace tandem::cuda
