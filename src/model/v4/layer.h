// One transformer layer over the rows of a pass: attention half and expert half, each between a
// hyper-connection entry and exit. SOURCE: model.md 2.2 - 2.11.
#pragma once

#include <cstdint>

#include "compute/comm/communicator.h"
#include "compute/kernels/kernels.h"
#include "compute/tensor/row_format.h"
#include "model/v4/dims.h"
#include "model/v4/weights.h"
#include "model/v4/workspace.h"

namespace tandem::v4 {

// What every layer of a pass shares.
struct Pass {
  kernels::Kernels* kernels = nullptr;
  comm::Communicator* communicator = nullptr;
  const Dims* dims = nullptr;
  const Workspace* work = nullptr;
  kernels::StepRows rows;
  bool block_draft = false;  // DSpark: no causal mask in a segment, rows are not kept
};

// One layer's caches and rotation table.
struct LayerCaches {
  std::int32_t ratio = 0;
  const float* inv_freq = nullptr;  // [32]
  tensor::RowFormat window_format = tensor::RowFormat::kF32;
  kernels::RingView window;
  kernels::RingView state;            // ratio 4 and 128
  kernels::PagedRowsView compressed;  // ratio 4 and 128
  kernels::RingView index_state;      // ratio 4
  kernels::PagedRowsView index_keys;  // ratio 4
};

// Updates streams [n_tokens, hc_mult, hidden] in place.
void run_layer(const Pass& pass, const LayerWeights& layer, const LayerCaches& caches,
               float* streams);

// y = x * W^T for n_rows adjacent rows.
void linear(kernels::Kernels& kernels, std::int64_t n_rows, const float* x,
            const tensor::WeightMatrix& w, kernels::LinearKind kind, float* out);

}  // namespace tandem::v4
