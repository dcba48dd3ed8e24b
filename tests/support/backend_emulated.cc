// The CUDA kernels on the host emulation, with memory that the host cannot touch: model code that
// reads device memory behind the device's back ends the test. Steps are recorded and replayed.
#include "compute/cuda/cuda_kernels.h"
#include "compute/cuda/emulation/guarded_device.h"
#include "tests/support/backend.h"

namespace tandem::testing {
namespace {

struct Recorder {
  std::unique_ptr<device::GraphRecorder> recorder = cuda::emulation::make_list_recorder();
  device::StepGraphs graphs{*recorder, 64, 256};
};

}  // namespace

Backend make_backend(kernels::Numerics numerics, bool) {
  constexpr std::int64_t kDeviceBytes = std::int64_t{512} << 20;
  constexpr std::int64_t kScratchBytes = std::int64_t{4} << 20;
  std::shared_ptr<device::Device> device = cuda::emulation::make_guarded_device(kDeviceBytes);
  const auto recorder = std::make_shared<Recorder>();
  return {device, cuda::make_cuda_kernels(*device, nullptr, numerics, kScratchBytes).value(),
          std::shared_ptr<device::StepGraphs>(recorder, &recorder->graphs)};
}

}  // namespace tandem::testing
