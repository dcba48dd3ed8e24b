// From a path to a checked checkpoint and to one rank's weights.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "compute/device/device.h"
#include "foundation/base/status.h"
#include "model/checkpoint/index.h"
#include "model/checkpoint/weight_store.h"
#include "model/v4/config.h"

namespace tandem::v4 {

struct OpenedModel {
  checkpoint::CheckpointFiles files;  // files.root holds config.json and tokenizer.json
  ModelConfig config;
  std::vector<checkpoint::TensorSpec> table;
  bool has_config = false;  // false: config.json is unusable, config and table are empty
};

// Reads config, index and headers (no data) and puts all that is wrong into `problems`.
// `world`: ranks that must be able to share the weights.
OpenedModel examine_model(const std::filesystem::path& path, int world,
                          checkpoint::ProblemList& problems);

// examine_model() that fails with one report. ERRORS: kNotFound, kInvalidArgument, kDataLoss.
Result<OpenedModel> open_model(const std::filesystem::path& path, int world);

// Loads the rank's weights. `device` outlives the store.
Result<checkpoint::WeightStore> load_weights(const OpenedModel& model, device::Device& device,
                                             const checkpoint::LoadOptions& options);

}  // namespace tandem::v4
