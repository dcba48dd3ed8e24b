// Drafting with the DSpark stages of the 0731 checkpoint. SOURCE: model.md 2.15 (a) - (d).
//
// Accepted rows of the last step become context keys in each stage's window. Then one pass over
// block_size slots per sequence, [anchor, noise, noise, ...] at the positions after the last
// accepted one, gives base logits for all slots; the Markov head corrects slot i by the token
// chosen at slot i - 1, so tokens are chosen one after the other.
#include <cmath>

#include "model/v4/model_state.h"

namespace tandem::v4 {
namespace {

// (b) Context keys of the accepted rows in every stage's window.
void append_context(const ModelState& state, std::span<const DraftSequence> sequences,
                    const std::vector<kernels::Segment>& segments) {
  const Dims& d = state.dims;
  const Workspace& work = state.work;
  const DsparkWeights& spark = state.weights.dspark;
  kernels::Kernels& kernels = *state.parts.kernels;
  auto* main_x = work.draft_normed.as<float>();
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const DraftSequence& sequence = sequences[i];
    const auto first = state.last.tokens.begin() + sequence.first_row;
    tokens.insert(tokens.end(), first, first + sequence.n_rows);
    linear(kernels, sequence.n_rows,
           work.taps.as<float>() + sequence.first_row * spark.main_proj.cols, spark.main_proj,
           kernels::LinearKind::kQuantised,
           main_x + std::int64_t{segments[i].first_row} * d.hidden);
  }
  const Pass pass = begin_pass(state, tokens, segments);
  send_inputs(state, pass.rows);
  hidden_norm(state, pass.rows.n_tokens, main_x, spark.main_norm, main_x);
  for (std::size_t stage = 0; stage < state.weights.draft_layers.size(); ++stage) {
    const AttentionWeights& attn = state.weights.draft_layers[stage].attn;
    const LayerCaches caches = draft_caches(state, static_cast<std::int32_t>(stage));
    linear(kernels, pass.rows.n_tokens, main_x, attn.wkv, kernels::LinearKind::kQuantised,
           work.kv.as<float>());
    kernels::KvArgs kv;
    kv.rows = pass.rows;
    kv.eps = d.norm_eps;
    kv.norm = attn.kv_norm;
    kv.inv_freq = caches.inv_freq;
    kv.kv = work.kv.as<float>();
    kernels.kv(kv);
    kernels::WindowAppendArgs append;
    append.rows = pass.rows;
    append.kv = work.kv.as<float>();
    append.window = caches.window;
    append.format = caches.window_format;
    kernels.window_append(append);
  }
}

// (c) The draft pass: base logits [n * block_size, vocab] in work.draft_logits, collapsed streams
// in work.draft_hidden.
void run_slots(const ModelState& state, std::span<const DraftSequence> sequences,
               const std::vector<std::size_t>& active,
               const std::vector<kernels::Segment>& accepted) {
  const Dims& d = state.dims;
  std::vector<TokenId> tokens;
  std::vector<kernels::Segment> segments;
  for (const std::size_t i : active) {
    kernels::Segment segment = accepted[i];
    segment.first_position += segment.n_rows;
    segment.first_row = static_cast<std::int32_t>(tokens.size());
    segment.n_rows = d.block_size;
    segments.push_back(segment);
    tokens.push_back(sequences[i].next_token);
    tokens.insert(tokens.end(), static_cast<std::size_t>(d.block_size - 1), d.noise_token);
  }
  Pass pass = begin_pass(state, tokens, segments);
  pass.block_draft = true;
  auto* streams = state.work.draft_streams.as<float>();
  embed_tokens(state, pass, state.weights.embed, d.hc_mult, streams);
  for (std::size_t stage = 0; stage < state.weights.draft_layers.size(); ++stage) {
    run_layer(pass, state.weights.draft_layers[stage],
              draft_caches(state, static_cast<std::int32_t>(stage)), streams);
  }
  std::vector<std::int32_t> rows(tokens.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row] = static_cast<std::int32_t>(row);
  }
  choose_rows(state, rows);
  run_head(state, state.weights.draft_head_in, streams, static_cast<std::int64_t>(rows.size()),
           state.work.draft_hidden.as<float>(), state.work.draft_logits.as<float>());
}

// A row slice [1, cols] of the confidence matrix from column `first`.
tensor::WeightMatrix confidence_part(const tensor::WeightMatrix& w, std::int64_t first,
                                     std::int64_t cols) {
  tensor::WeightMatrix part = w;
  part.cols = cols;
  part.data = static_cast<const std::uint16_t*>(w.data) + first;
  return part;
}

// sigmoid(proj . [x_slot ; m]) for each sequence in `members`; m in work.markov.
std::vector<float> confidences(const ModelState& state, const std::vector<std::size_t>& members,
                               std::int32_t slot) {
  const Dims& d = state.dims;
  const Workspace& work = state.work;
  const tensor::WeightMatrix& proj = state.weights.dspark.confidence;
  auto* of_hidden = work.confidence.as<float>();
  float* of_markov = of_hidden + state.limits.n_slots;
  for (std::size_t j = 0; j < members.size(); ++j) {
    const std::int64_t row = static_cast<std::int64_t>(members[j]) * d.block_size + slot;
    linear(*state.parts.kernels, 1, work.draft_hidden.as<float>() + row * d.hidden,
           confidence_part(proj, 0, d.hidden), kernels::LinearKind::kF32, of_hidden + j);
  }
  linear(*state.parts.kernels, static_cast<std::int64_t>(members.size()), work.markov.as<float>(),
         confidence_part(proj, d.hidden, d.markov_rank), kernels::LinearKind::kF32, of_markov);
  state.parts.device->synchronize();
  std::vector<float> result(members.size());
  for (std::size_t j = 0; j < members.size(); ++j) {
    result[j] = 1.0F / (1.0F + std::exp(-(of_hidden[j] + of_markov[j])));
  }
  return result;
}

// Embeds tokens with markov_w1: [n, markov_rank] in work.markov.
void markov_rows(const ModelState& state, std::span<const TokenId> tokens) {
  state.parts.device->synchronize();  // the pass before reads its tokens from the same place
  Pass pass;
  std::copy(tokens.begin(), tokens.end(), state.work.tokens_in.as<TokenId>());
  pass.rows.n_tokens = static_cast<std::int32_t>(tokens.size());
  pass.rows.tokens = state.work.tokens.as<TokenId>();
  embed_tokens(state, pass, state.weights.dspark.markov_w1, 1, state.work.markov.as<float>());
}

// (d) Markov correction and choice, slot after slot.
void choose_tokens(const ModelState& state, std::span<const DraftSequence> sequences,
                   const std::vector<std::size_t>& active, const DraftSampler& sampler,
                   DraftOutput& output) {
  const Dims& d = state.dims;
  const auto vocab = static_cast<std::size_t>(d.vocab);
  auto* base = state.work.draft_logits.as<float>();
  auto* correction = state.work.markov_logits.as<float>();
  for (std::int32_t slot = 0; slot < d.block_size; ++slot) {
    std::vector<std::size_t> members;  // index into active
    std::vector<TokenId> before;
    for (std::size_t j = 0; j < active.size(); ++j) {
      const DraftSequence& sequence = sequences[active[j]];
      if (sequence.n_drafts > slot) {
        members.push_back(j);
        before.push_back(slot == 0 ? sequence.next_token : output.tokens[active[j]].back());
      }
    }
    if (members.empty()) {
      return;
    }
    markov_rows(state, before);
    vocab_linear(state, static_cast<std::int64_t>(members.size()), state.work.markov.as<float>(),
                 state.weights.dspark.markov_w2, correction);
    const std::vector<float> confidence = confidences(state, members, slot);
    for (std::size_t k = 0; k < members.size(); ++k) {
      const std::size_t index = active[members[k]];
      const auto row =
          members[k] * static_cast<std::size_t>(d.block_size) + static_cast<std::size_t>(slot);
      float* logits = base + row * vocab;
      for (std::size_t v = 0; v < vocab; ++v) {
        logits[v] += correction[k * vocab + v];
      }
      output.tokens[index].push_back(sampler(index, slot, {logits, vocab}));
      output.confidences[index].push_back(confidence[k]);
    }
  }
}

}  // namespace

DraftOutput draft_dspark(ModelState& state, std::span<const DraftSequence> sequences,
                         const DraftSampler& sampler) {
  DraftOutput output;
  output.tokens.resize(sequences.size());
  output.confidences.resize(sequences.size());
  const std::vector<kernels::Segment> accepted = accepted_segments(state, sequences);
  append_context(state, sequences, accepted);
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].n_drafts > 0) {
      active.push_back(i);
    }
  }
  if (!active.empty()) {
    run_slots(state, sequences, active, accepted);
    choose_tokens(state, sequences, active, sampler, output);
  }
  return output;
}

}  // namespace tandem::v4
