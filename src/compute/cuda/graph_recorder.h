// GraphRecorder over CUDA graphs: the work that a stream would run is captured and instantiated.
#pragma once

#include <memory>

#include "compute/device/step_graphs.h"

namespace tandem::cuda {

// `stream` is a cudaStream_t that outlives the result.
std::unique_ptr<device::GraphRecorder> make_graph_recorder(void* stream);

}  // namespace tandem::cuda
