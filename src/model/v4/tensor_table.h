// The tensor table: every tensor of the checkpoint that a config describes, with dtype, shape and
// split. SOURCE: model.md 3.2 (names, shapes), 3.5 (split, "TP form").
#pragma once

#include <vector>

#include "model/checkpoint/tensor_spec.h"
#include "model/v4/config.h"

namespace tandem::v4 {

// In the order in which the official shards list them: embed, layers, head, draft stages.
std::vector<checkpoint::TensorSpec> make_tensor_table(const ModelConfig& config);

}  // namespace tandem::v4
