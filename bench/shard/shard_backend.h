// What shard_bench runs on: one definition per program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "compute/cuda/fill.h"
#include "compute/device/device.h"
#include "compute/device/step_graphs.h"
#include "compute/kernels/kernels.h"
#include "foundation/base/status.h"

namespace tandem::bench {

class ShardBackend {
 public:
  virtual ~ShardBackend() = default;
  virtual std::string name() const = 0;
  virtual device::Device& device() = 0;
  virtual kernels::Kernels& kernels() = 0;
  virtual device::StepGraphs* graphs() = 0;  // nullptr: none
  // Fills n elements of device memory.
  virtual void fill(const cuda::FillSpec& spec, void* data, std::int64_t n) = 0;
  // Reads n bytes of device memory once and waits.
  virtual void read(const void* data, std::int64_t n) = 0;
};

Result<std::unique_ptr<ShardBackend>> open_shard_backend(bool use_graphs);

}  // namespace tandem::bench
