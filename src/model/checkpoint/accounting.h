// Accounting: every tensor of the table is in the checkpoint exactly once, with its dtype and
// shape, and nothing else is there.
#pragma once

#include <span>

#include "model/checkpoint/index.h"
#include "model/checkpoint/problem.h"
#include "model/checkpoint/tensor_spec.h"

namespace tandem::checkpoint {

// Integer tensors may be I32 or I64, whichever the table names.
void check_tensors(const CheckpointFiles& files, std::span<const TensorSpec> table,
                   ProblemList& problems);

// Every split tensor can be divided over `world` ranks.
void check_split(std::span<const TensorSpec> table, int world, ProblemList& problems);

}  // namespace tandem::checkpoint
