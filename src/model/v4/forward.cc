// The forward pass over one step's rows, and V4Model's other entry points.
#include <algorithm>
#include <utility>

#include "model/v4/model_state.h"

namespace tandem::v4 {
namespace {

template <typename T>
std::vector<T> download(const ModelState& state, const device::Buffer& buffer, std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  state.parts.device->download(values.data(), buffer.data(), n * std::int64_t{sizeof(T)});
  return values;
}

void observe_layer(const ModelState& state, std::int32_t layer, std::int64_t n_tokens) {
  if (state.observer == nullptr) {
    return;
  }
  const Dims& d = state.dims;
  const Workspace& work = state.work;
  state.observer->on_layer(layer,
                           download<float>(state, work.streams, n_tokens * d.hc_mult * d.hidden));
  state.observer->on_experts(
      layer, download<std::int32_t>(state, work.experts, n_tokens * d.expert_top_k));
  if (d.ratios[static_cast<std::size_t>(layer)] == 4) {
    state.observer->on_selected(
        layer, download<std::int32_t>(state, work.selected, n_tokens * d.index_top_k),
        download<std::int32_t>(state, work.n_selected, n_tokens));
  }
}

// (a) of model.md 2.15: the layer's mean stream, if the drafter wants it.
void tap_layer(const ModelState& state, std::int32_t layer, std::int32_t n_tokens) {
  if (state.draft_kind != DraftKind::kDspark) {
    return;
  }
  const Dims& d = state.dims;
  const auto found = std::find(d.tap_layers.begin(), d.tap_layers.end(), layer);
  if (found == d.tap_layers.end()) {
    return;
  }
  kernels::StreamMeanArgs args;
  args.n_tokens = n_tokens;
  args.hidden = d.hidden;
  args.hc_mult = d.hc_mult;
  args.streams = state.work.streams.as<float>();
  args.out = state.work.taps.as<float>() + (found - d.tap_layers.begin()) * d.hidden;
  args.out_stride = static_cast<std::int64_t>(d.tap_layers.size()) * d.hidden;
  state.parts.kernels->stream_mean(args);
}

class Model final : public V4Model {
 public:
  Model(const ModelConfig& config, ModelState state) : config_(config), state_(std::move(state)) {}

  // Recorded steps refer to this model's memory and to its communicator's: they go first.
  ~Model() override {
    if (state_.parts.graphs != nullptr) {
      state_.parts.graphs->clear();
    }
  }

  const ModelConfig& config() const override { return config_; }
  const ModelLimits& limits() const override { return state_.limits; }
  DraftKind draft_kind() const override { return state_.draft_kind; }
  std::int32_t max_drafts() const override { return v4::max_drafts(state_); }
  cache::KvCache& kv_cache() override { return *state_.kv_cache; }
  void set_observer(StepObserver* observer) override { state_.observer = observer; }

  Result<StepOutput> forward(const StepInput& input) override {
    TANDEM_TRY(check_step(state_, input));
    state_.last = input;
    const Pass pass = begin_pass(state_, input.tokens, input.segments);
    choose_rows(state_, input.logit_rows);
    TANDEM_TRY(run_step(pass, static_cast<std::int32_t>(input.logit_rows.size())));
    state_.parts.device->synchronize();
    state_.may_draft = true;
    StepOutput output;
    output.vocab = state_.dims.vocab;
    if (!input.logit_rows.empty()) {
      output.logits = {state_.work.logits.as<float>(),
                       input.logit_rows.size() * static_cast<std::size_t>(state_.dims.vocab)};
    }
    return output;
  }

  Result<DraftOutput> draft(std::span<const DraftSequence> sequences,
                            const DraftSampler& sampler) override {
    TANDEM_TRY(check_draft(state_, sequences));
    if (sequences.empty()) {
      return DraftOutput{};
    }
    state_.may_draft = false;
    DraftOutput output = state_.draft_kind == DraftKind::kMtp
                             ? draft_mtp(state_, sequences, sampler)
                             : draft_dspark(state_, sequences, sampler);
    state_.parts.device->synchronize();
    return output;
  }

 private:
  // Directly or through a recorded graph. An observer looks between layers, so it needs the former.
  Status run_step(const Pass& pass, std::int32_t n_logit_rows) {
    const auto queue = [&] { queue_step(pass, n_logit_rows); };
    if (state_.parts.graphs == nullptr || state_.observer != nullptr) {
      queue();
      return ok_status();
    }
    constexpr std::int32_t kMainStep = 0;
    return state_.parts.graphs->run(
        {pass.rows.n_tokens, pass.rows.n_segments, n_logit_rows, kMainStep}, queue);
  }

  // Everything here depends on the sizes of the pass alone; contents are read by the kernels.
  void queue_step(const Pass& pass, std::int32_t n_logit_rows) {
    auto* streams = state_.work.streams.as<float>();
    embed_tokens(state_, pass, state_.weights.embed, state_.dims.hc_mult, streams);
    for (std::int32_t layer = 0; layer < state_.dims.n_layers(); ++layer) {
      run_layer(pass, state_.weights.layers[static_cast<std::size_t>(layer)],
                layer_caches(state_, layer), streams);
      tap_layer(state_, layer, pass.rows.n_tokens);
      observe_layer(state_, layer, pass.rows.n_tokens);
    }
    if (n_logit_rows > 0) {
      run_head(state_, state_.weights.head_in, streams, n_logit_rows, nullptr,
               state_.work.logits.as<float>());
    }
  }

  const ModelConfig config_;
  ModelState state_;
};

}  // namespace

std::unique_ptr<V4Model> make_model(const ModelConfig& config, ModelState state) {
  return std::make_unique<Model>(config, std::move(state));
}

Pass begin_pass(const ModelState& state, std::span<const TokenId> tokens,
                std::span<const kernels::Segment> segments) {
  state.parts.device->synchronize();
  std::copy(tokens.begin(), tokens.end(), state.work.tokens_in.as<TokenId>());
  std::copy(segments.begin(), segments.end(), state.work.segments_in.as<kernels::Segment>());
  Pass pass;
  pass.kernels = state.parts.kernels;
  pass.communicator = state.parts.communicator;
  pass.dims = &state.dims;
  pass.work = &state.work;
  pass.rows.n_tokens = static_cast<std::int32_t>(tokens.size());
  pass.rows.n_segments = static_cast<std::int32_t>(segments.size());
  pass.rows.tokens = state.work.tokens.as<TokenId>();
  pass.rows.segments = state.work.segments.as<kernels::Segment>();
  return pass;
}

void send_inputs(const ModelState& state, const kernels::StepRows& rows) {
  const Workspace& work = state.work;
  const std::int64_t token_bytes = rows.n_tokens * std::int64_t{sizeof(TokenId)};
  const std::int64_t segment_bytes = rows.n_segments * std::int64_t{sizeof(kernels::Segment)};
  device::Device& device = *state.parts.device;
  device.copy_rows(work.tokens.data(), token_bytes, work.tokens_in.data(), token_bytes, token_bytes,
                   1);
  if (segment_bytes > 0) {
    device.copy_rows(work.segments.data(), segment_bytes, work.segments_in.data(), segment_bytes,
                     segment_bytes, 1);
  }
}

LayerCaches layer_caches(const ModelState& state, std::int32_t layer) {
  const cache::KvCache& kv = *state.kv_cache;
  LayerCaches caches;
  caches.ratio = state.dims.ratios[static_cast<std::size_t>(layer)];
  caches.inv_freq = caches.ratio == 0 ? state.plain_inv_freq() : state.yarn_inv_freq();
  caches.window_format = kv.layout().shape().kv_format;
  caches.window = kv.window(layer);
  if (caches.ratio != 0) {
    caches.state = kv.state(layer);
    caches.compressed = kv.compressed(layer);
  }
  if (caches.ratio == 4) {
    caches.index_state = kv.index_state(layer);
    caches.index_keys = kv.index_keys(layer);
  }
  return caches;
}

LayerCaches draft_caches(const ModelState& state, std::int32_t stage) {
  LayerCaches caches;
  caches.inv_freq = state.plain_inv_freq();
  caches.window_format = state.kv_cache->layout().shape().kv_format;
  caches.window = state.kv_cache->draft_window(stage);
  return caches;
}

std::int32_t max_drafts(const ModelState& state) {
  switch (state.draft_kind) {
    case DraftKind::kNone:
      return 0;
    case DraftKind::kMtp:
      return state.limits.draft_slack;
    case DraftKind::kDspark:
      return std::min(state.limits.draft_slack, state.dims.block_size);
  }
  return 0;
}

std::vector<kernels::Segment> accepted_segments(const ModelState& state,
                                                std::span<const DraftSequence> sequences) {
  std::vector<kernels::Segment> segments;
  std::int32_t next_row = 0;
  std::size_t at = 0;
  for (const DraftSequence& sequence : sequences) {
    while (sequence.first_row >=
           state.last.segments[at].first_row + state.last.segments[at].n_rows) {
      ++at;
    }
    kernels::Segment segment = state.last.segments[at];
    segment.first_position += sequence.first_row - segment.first_row;
    segment.first_row = next_row;
    segment.n_rows = sequence.n_rows;
    next_row += sequence.n_rows;
    segments.push_back(segment);
  }
  return segments;
}

}  // namespace tandem::v4
