// What a model runs on in tests that hold for every backend. Each test binary links one definition.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "compute/device/device.h"
#include "compute/device/step_graphs.h"
#include "compute/kernels/kernels.h"

namespace tandem::testing {

struct Backend {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<kernels::Kernels> kernels;
  std::shared_ptr<device::StepGraphs> graphs;  // nullptr: the backend records nothing
};

Backend make_backend(kernels::Numerics numerics);

// How much the backend gets through in test time.
struct TestSize {
  std::vector<int> prompts;    // tokens of golden prompts
  std::size_t n_greedy = 16;   // tokens after each
  std::size_t n_native = 130;  // tokens of the test that cuts a prompt in two ways
};
TestSize test_size();

}  // namespace tandem::testing
