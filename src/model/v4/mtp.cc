// Drafting with the preview checkpoint's MTP block. SOURCE: model.md 2.14.
//
// The block's slot i takes the streams of main position i and the token at i + 1. Accepted rows of
// the last step go through it first (their keys enter the block's window); the last of them gives
// the first draft. Each further draft feeds the block its own output streams and the token just
// drafted, one position on; those window rows are provisional and are written again when the main
// model has passed over them.
#include <algorithm>

#include "model/v4/model_state.h"

namespace tandem::v4 {
namespace {

// The block over rows whose normed streams [n * hc_mult, hidden] are in work.draft_normed;
// output streams in work.draft_streams.
void run_block(const ModelState& state, const Pass& pass) {
  const Dims& d = state.dims;
  const Workspace& work = state.work;
  const MtpWeights& mtp = state.weights.mtp;
  kernels::Kernels& kernels = *state.parts.kernels;
  const std::int64_t n = pass.rows.n_tokens;
  auto* embedded = work.draft_embed.as<float>();
  auto* streams = work.draft_streams.as<float>();
  embed_tokens(state, pass, state.weights.embed, 1, embedded);
  hidden_norm(state, n, embedded, mtp.enorm, embedded);
  linear(kernels, n, embedded, mtp.e_proj, kernels::LinearKind::kQuantised,
         work.draft_added.as<float>());
  linear(kernels, n * d.hc_mult, work.draft_normed.as<float>(), mtp.h_proj,
         kernels::LinearKind::kQuantised, streams);
  kernels::StreamAddArgs add;
  add.n_tokens = static_cast<std::int32_t>(n);
  add.hidden = d.hidden;
  add.hc_mult = d.hc_mult;
  add.e = work.draft_added.as<float>();
  add.streams = streams;
  kernels.stream_add(add);
  run_layer(pass, state.weights.draft_layers.front(), draft_caches(state, 0), streams);
}

// Normed streams of `row` of `streams` -> row `to_row` of work.draft_normed, n_rows of them.
void take_streams(const ModelState& state, const float* streams, std::int32_t row,
                  std::int32_t n_rows, std::int32_t to_row) {
  const std::int64_t width = std::int64_t{state.dims.hc_mult} * state.dims.hidden;
  hidden_norm(state, std::int64_t{n_rows} * state.dims.hc_mult, streams + row * width,
              state.weights.mtp.hnorm, state.work.draft_normed.as<float>() + to_row * width);
}

// A sequence that still wants drafts.
struct Drafting {
  std::size_t index = 0;  // in the caller's list
  std::int32_t row = 0;   // its last row in the pass before
  kernels::Segment at;    // where the pass before ended: slot and last position
};

// The accepted rows of all sequences, each with the token after it.
std::vector<Drafting> catch_up(const ModelState& state, std::span<const DraftSequence> sequences) {
  const std::vector<kernels::Segment> segments = accepted_segments(state, sequences);
  std::vector<TokenId> tokens;
  std::vector<Drafting> drafting;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const DraftSequence& sequence = sequences[i];
    const auto first = state.last.tokens.begin() + sequence.first_row;
    tokens.insert(tokens.end(), first + 1, first + sequence.n_rows);
    tokens.push_back(sequence.next_token);
    take_streams(state, state.work.streams.as<float>(), sequence.first_row, sequence.n_rows,
                 segments[i].first_row);
    kernels::Segment at = segments[i];
    at.first_position += sequence.n_rows - 1;
    drafting.push_back({i, segments[i].first_row + sequence.n_rows - 1, at});
  }
  run_block(state, begin_pass(state, tokens, segments));
  return drafting;
}

// Samples one draft per sequence from the block's output at Drafting::row.
void sample_drafts(const ModelState& state, std::span<const Drafting> drafting, std::int32_t depth,
                   const DraftSampler& sampler, DraftOutput& output) {
  std::vector<std::int32_t> rows;
  for (const Drafting& sequence : drafting) {
    rows.push_back(sequence.row);
  }
  auto* logits = state.work.draft_logits.as<float>();
  choose_rows(state, rows);
  run_head(state, state.weights.draft_head_in, state.work.draft_streams.as<float>(),
           static_cast<std::int64_t>(rows.size()), nullptr, logits);
  state.parts.device->synchronize();
  const auto vocab = static_cast<std::size_t>(state.dims.vocab);
  for (std::size_t i = 0; i < drafting.size(); ++i) {
    const TokenId token = sampler(drafting[i].index, depth, {logits + i * vocab, vocab});
    output.tokens[drafting[i].index].push_back(token);
  }
}

// One more position for each sequence, from its own output streams and last draft.
void advance(const ModelState& state, std::vector<Drafting>& drafting, const DraftOutput& output) {
  std::vector<TokenId> tokens;
  std::vector<kernels::Segment> segments;
  for (std::size_t i = 0; i < drafting.size(); ++i) {
    Drafting& sequence = drafting[i];
    const auto row = static_cast<std::int32_t>(i);
    take_streams(state, state.work.draft_streams.as<float>(), sequence.row, 1, row);
    sequence.row = row;
    sequence.at.first_row = row;
    sequence.at.n_rows = 1;
    sequence.at.first_position += 1;
    tokens.push_back(output.tokens[sequence.index].back());
    segments.push_back(sequence.at);
  }
  run_block(state, begin_pass(state, tokens, segments));
}

}  // namespace

DraftOutput draft_mtp(ModelState& state, std::span<const DraftSequence> sequences,
                      const DraftSampler& sampler) {
  DraftOutput output;
  output.tokens.resize(sequences.size());
  std::vector<Drafting> drafting = catch_up(state, sequences);
  for (std::int32_t depth = 0;; ++depth) {
    drafting.erase(std::remove_if(drafting.begin(), drafting.end(),
                                  [&](const Drafting& sequence) {
                                    return sequences[sequence.index].n_drafts <= depth;
                                  }),
                   drafting.end());
    if (drafting.empty()) {
      return output;
    }
    if (depth > 0) {
      advance(state, drafting, output);
    }
    sample_drafts(state, drafting, depth, sampler, output);
  }
}

}  // namespace tandem::v4
