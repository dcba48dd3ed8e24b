// A device for tests whose memory the host cannot touch: once synchronize() has
// returned and until the next kernel, an access ends the program, as it would with the memory of a
// GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/device/device.h"

namespace tandem::cuda::emulation {

// `bytes`: all memory that it will ever give.
std::unique_ptr<device::Device> make_guarded_device(std::int64_t bytes);

}  // namespace tandem::cuda::emulation
