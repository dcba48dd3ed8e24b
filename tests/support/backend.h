// What a model runs on in tests that hold for every backend. Each test binary links one definition.
#pragma once

#include <memory>

#include "compute/device/device.h"
#include "compute/device/step_graphs.h"
#include "compute/kernels/kernels.h"

namespace tandem::testing {

struct Backend {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<kernels::Kernels> kernels;
  std::shared_ptr<device::StepGraphs> graphs;  // nullptr: the backend records nothing
};

// plain: the oracle, where the backend has one.
Backend make_backend(kernels::Numerics numerics, bool plain);

}  // namespace tandem::testing
