// A device for tests whose memory the host cannot touch: once synchronize() has
// returned and until the next kernel, an access ends the program, as it would with the memory of a
// GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/device/device.h"
#include "compute/device/step_graphs.h"

namespace tandem::cuda::emulation {

// `bytes`: all memory that it will ever give.
std::unique_ptr<device::Device> make_guarded_device(std::int64_t bytes);

// Records launches and copies with their arguments, as a CUDA graph does: what a replay computes
// depends on memory alone. A wait or an upload while recording ends the program.
std::unique_ptr<device::GraphRecorder> make_list_recorder();

}  // namespace tandem::cuda::emulation
