// ModelState: what forward and the drafters work on. Internal to model/v4.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cache/kv_cache.h"
#include "model/v4/dims.h"
#include "model/v4/layer.h"
#include "model/v4/model.h"
#include "model/v4/weights.h"
#include "model/v4/workspace.h"

namespace tandem::v4 {

struct ModelState {
  ModelParts parts;
  ModelLimits limits;
  Dims dims;
  DraftKind draft_kind = DraftKind::kNone;
  ModelWeights weights;
  Workspace work;
  std::unique_ptr<cache::KvCache> kv_cache;
  device::Buffer inv_freq;  // [2, 32]: plain table, YaRN table
  StepInput last;           // of the last forward(), for draft()
  bool may_draft = false;   // a forward() ran and its buffers are whole
  StepObserver* observer = nullptr;

  const float* plain_inv_freq() const { return inv_freq.as<float>(); }
  const float* yarn_inv_freq() const { return inv_freq.as<float>() + tensor::kRopeDim / 2; }
};

// The model over a state that is complete.
std::unique_ptr<V4Model> make_model(const ModelConfig& config, ModelState state);

// Copies tokens and segments to where the device reads them, when it no longer reads the last ones,
// and makes the pass over them.
Pass begin_pass(const ModelState& state, std::span<const TokenId> tokens,
                std::span<const kernels::Segment> segments);

// Queues the way of a pass's tokens and segments to the kernels: the first thing of every pass.
void send_inputs(const ModelState& state, const kernels::StepRows& rows);

LayerCaches layer_caches(const ModelState& state, std::int32_t layer);
LayerCaches draft_caches(const ModelState& state, std::int32_t stage);

// streams [n_tokens, hc_mult, hidden] = copies of the tokens' embeddings.
void embed_tokens(const ModelState& state, const Pass& pass, const tensor::WeightMatrix& table,
                  std::int32_t hc_mult, float* streams);

// Says which rows of streams run_head() takes. REQUIRES: no earlier run_head() is still queued.
void choose_rows(const ModelState& state, std::span<const std::int32_t> rows);

// Logits [n_rows, vocab] of the chosen rows of streams. `collapsed` [n_rows, hidden]: the collapse
// before its norm; may be nullptr. SOURCE: model.md 2.12.
void run_head(const ModelState& state, const HeadWeights& head, const float* streams,
              std::int64_t n_rows, float* collapsed, float* logits);

// x [n_rows, w.cols] times a matrix whose rows are split over the ranks by vocabulary, gathered:
// out [n_rows, vocab].
void vocab_linear(const ModelState& state, std::int64_t n_rows, const float* x,
                  const tensor::WeightMatrix& w, float* out);

// One RMS norm over n_rows adjacent rows of the hidden width.
void hidden_norm(const ModelState& state, std::int64_t n_rows, const float* x,
                 const std::uint16_t* weight, float* out);

// The accepted rows of each sequence, packed: segments[i] covers the rows of sequences[i].
// REQUIRES: sequences passed check_draft.
std::vector<kernels::Segment> accepted_segments(const ModelState& state,
                                                std::span<const DraftSequence> sequences);

// The drafters behind V4Model::draft. REQUIRES: sequences passed check_draft.
DraftOutput draft_mtp(ModelState& state, std::span<const DraftSequence> sequences,
                      const DraftSampler& sampler);
DraftOutput draft_dspark(ModelState& state, std::span<const DraftSequence> sequences,
                         const DraftSampler& sampler);

// See V4Model::max_drafts.
std::int32_t max_drafts(const ModelState& state);

// ERRORS: kInvalidArgument or kFailedPrecondition, naming what is wrong with the call.
Status check_step(const ModelState& state, const StepInput& input);
Status check_draft(const ModelState& state, std::span<const DraftSequence> sequences);

}  // namespace tandem::v4
