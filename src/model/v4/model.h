// V4Model: one rank's weights, caches and workspace, and the forward pass over a step's rows.
// No policy: which rows run, in which slots and pages, is the caller's plan.
//
// Every rank calls the same functions with the same arguments in the same order; logits and drafts
// are the same bits on all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compute/comm/communicator.h"
#include "compute/device/device.h"
#include "compute/device/step_graphs.h"
#include "compute/kernels/kernels.h"
#include "compute/kernels/step_rows.h"
#include "compute/tensor/row_format.h"
#include "foundation/base/ids.h"
#include "foundation/base/status.h"
#include "model/cache/cache_layout.h"
#include "model/cache/kv_cache.h"
#include "model/v4/config.h"

namespace tandem::checkpoint {
class WeightStore;
}

namespace tandem::v4 {

// What one forward pass runs. Plain data; the same on every rank.
struct StepInput {
  std::vector<TokenId> tokens;             // [n_tokens]
  std::vector<kernels::Segment> segments;  // cover the tokens, see StepRows
  std::vector<std::int32_t> logit_rows;    // rows whose logits are wanted, ascending
};

// Valid until the next forward(). Rows in the order of logit_rows.
struct StepOutput {
  std::span<const float> logits;  // [n_logit_rows, vocab] float32, all ranks
  std::int32_t vocab = 0;

  std::span<const float> row(std::size_t i) const {
    const auto width = static_cast<std::size_t>(vocab);
    return logits.subspan(i * width, width);
  }
};

// Sizes that are fixed at start; memory is planned from them (architecture decision 10).
struct ModelLimits {
  std::int32_t max_step_tokens = 512;   // rows of one forward pass
  std::int32_t max_logit_rows = 64;     // rows with logits of one pass
  std::int32_t n_slots = 8;             // sequences with live state
  std::int64_t max_context_tokens = 0;  // longest sequence
  std::int64_t n_pages = 0;             // pages of page_tokens tokens, shared by all sequences
  std::int32_t draft_slack = 8;         // rows that may be rolled back at once
};

// Tokens per page of compressed rows.
constexpr std::int32_t kPageTokens = cache::kPageTokens;

// One sequence's part of draft(): rows of the last forward() that are now part of the sequence.
struct DraftSequence {
  std::int32_t first_row = 0;  // row of the last forward()
  std::int32_t n_rows = 0;     // accepted rows from there, at least 1, within one segment
  TokenId next_token = 0;      // the token after the last accepted row (prompt or sampled)
  std::int32_t n_drafts = 0;   // 0: only keep the draft caches up to date
};

// Picks the draft token for sequence `index` (in DraftInput order) at `depth` (0 = first draft)
// from its logits [vocab]. Must give the same answer on every rank.
using DraftSampler =
    std::function<TokenId(std::size_t index, std::int32_t depth, std::span<const float> logits)>;

struct DraftOutput {
  std::vector<std::vector<TokenId>> tokens;     // [n_sequences][n_drafts]
  std::vector<std::vector<float>> confidences;  // DSpark: same shape, in (0, 1); else empty
};

// Sees intermediate results of forward(); for tests, traces and counters. Spans are valid during
// the call only.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // Residual streams [n_tokens, hc_mult, hidden] after a main layer.
  virtual void on_layer(std::int32_t layer, std::span<const float> streams) = 0;
  // Chosen experts [n_tokens, top_k] of a main layer.
  virtual void on_experts(std::int32_t layer, std::span<const std::int32_t> experts) = 0;
  // Compressed rows [n_tokens, top_k] that a ratio-4 layer attends to; n_selected [n_tokens].
  virtual void on_selected(std::int32_t layer, std::span<const std::int32_t> selected,
                           std::span<const std::int32_t> n_selected) = 0;
};

// What the model runs on. All outlive it.
struct ModelParts {
  device::Device* device = nullptr;
  kernels::Kernels* kernels = nullptr;
  comm::Communicator* communicator = nullptr;
  device::StepGraphs* graphs =
      nullptr;  // main steps are recorded and replayed; nullptr: they are not
};

class V4Model {
 public:
  // Takes typed views of the weights in `store` (loaded for this rank) and allocates caches and
  // workspace. kv_format: kF32 for `reference` numerics; kBf16 or kFp8 are exact for `native`.
  // ERRORS: kInvalidArgument for limits or formats that do not fit; kResourceExhausted.
  static Result<std::unique_ptr<V4Model>> create(const ModelConfig& config,
                                                 const checkpoint::WeightStore& store,
                                                 const ModelParts& parts, const ModelLimits& limits,
                                                 tensor::RowFormat kv_format);

  // Bytes that create() will allocate, by label: caches and workspace, not weights.
  static Result<std::vector<device::MemoryUse>> plan_memory(const ModelConfig& config, int tp_size,
                                                            const ModelLimits& limits,
                                                            tensor::RowFormat kv_format);

  // Sizes of the caches that create() will allocate, the same on every rank.
  static Result<cache::CacheLayout> plan_cache(const ModelConfig& config, const ModelLimits& limits,
                                               tensor::RowFormat kv_format);

  virtual ~V4Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const ModelLimits& limits() const = 0;
  virtual DraftKind draft_kind() const = 0;
  // Most drafts per sequence and step: 0 without a drafter, else draft_slack, for DSpark also
  // dspark_block_size.
  virtual std::int32_t max_drafts() const = 0;

  // Pages are assigned and snapshots are taken here.
  virtual cache::KvCache& kv_cache() = 0;

  // forward() and draft() return when the device is idle again.
  //
  // Runs the rows: any mix of prompt chunks, single tokens and verify blocks. A segment that starts
  // before rows that were computed earlier replaces them (rollback = truncation).
  // ERRORS: kInvalidArgument for a step that breaks StepRows' rules, the limits, the vocabulary or
  // that has no page for its tokens; nothing has run then.
  virtual Result<StepOutput> forward(const StepInput& input) = 0;

  // After forward(): brings the draft caches up to the accepted rows and drafts n_drafts tokens for
  // each sequence. Every accepted row of the last 128 positions must pass through here once.
  // Uses the buffers of the last forward(), so at most one call per forward(); logits of
  // forward() stay valid.
  // ERRORS: kFailedPrecondition without a drafter; kInvalidArgument.
  virtual Result<DraftOutput> draft(std::span<const DraftSequence> sequences,
                                    const DraftSampler& sampler) = 0;

  // nullptr: none.
  virtual void set_observer(StepObserver* observer) = 0;
};

}  // namespace tandem::v4
