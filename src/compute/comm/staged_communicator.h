// StagedCommunicator: collectives of another communicator for values that lie in device memory.
// They travel through host memory, so it works over any network and everywhere; it is the fallback
// where the GPU's own collectives are not, and it cannot be part of a recorded step.
#pragma once

#include <memory>

#include "compute/comm/communicator.h"
#include "compute/device/device.h"

namespace tandem::comm {

// Both outlive the result.
std::unique_ptr<Communicator> make_staged_communicator(Communicator& inner, device::Device& device);

}  // namespace tandem::comm
