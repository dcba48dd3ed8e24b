// Compressed rows: pooling of ratio 4 (overlapping windows) and ratio 128. SOURCE: model.md 2.6,
// traps T16-T21.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {
namespace {

using kernels::CompressArgs;
using kernels::CompressedKind;
using kernels::Segment;
using tensor::kRopeDim;

// Value and score (ape included) of one token: from this step's rows or from the ring.
struct TokenState {
  const float* values;
  std::vector<float> scores;
};

TokenState state_of(const CompressArgs& args, const Segment& segment, Position p) {
  const auto width = static_cast<std::size_t>(args.width);
  TokenState state{nullptr, std::vector<float>(width)};
  if (p < segment.first_position) {
    const auto* row = static_cast<const float*>(ring_row(args.state, segment.slot, p));
    state.values = row;
    std::copy(row + args.width, row + 2 * args.width, state.scores.begin());
    return state;
  }
  const std::int64_t t = segment.first_row + (p - segment.first_position);
  const float* ape = args.ape + (p % args.ratio) * args.width;
  state.values = args.kv + t * args.width;
  for (std::size_t i = 0; i < width; ++i) {
    state.scores[i] = args.score[t * args.width + static_cast<std::int64_t>(i)] + ape[i];
  }
  return state;
}

// One candidate of a pool: d values and d logits.
struct Candidate {
  std::vector<float> values;
  std::vector<float> logits;
};

void add_candidates(const CompressArgs& args, const Segment& segment, Position first, int offset,
                    int d, std::vector<Candidate>& candidates) {
  for (Position p = first; p < first + args.ratio; ++p) {
    const TokenState state = state_of(args, segment, p);
    const auto begin = state.scores.begin() + offset;
    candidates.push_back({std::vector<float>(state.values + offset, state.values + offset + d),
                          std::vector<float>(begin, begin + d)});
  }
}

// Softmax over the candidates, separately for every dim (T19).
void pool(Numerics numerics, const std::vector<Candidate>& candidates, int d, float* out) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(d); ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates) {
      largest = std::max(largest, static_cast<double>(candidate.logits[i]));
    }
    double sum = 0;
    double weighted = 0;
    for (const Candidate& candidate : candidates) {
      const double weight = std::exp(static_cast<double>(candidate.logits[i]) - largest);
      sum += weight;
      weighted += weight * static_cast<double>(candidate.values[i]);
    }
    out[i] = rounded(numerics, weighted / sum);
  }
}

void emit_row(Numerics numerics, const CompressArgs& args, const Segment& segment, Position c) {
  const int d = args.ratio == 4 ? args.width / 2 : args.width;
  std::vector<Candidate> candidates;
  if (args.ratio == 4) {
    if (c > 0) {  // row 0 has no previous window (T18)
      add_candidates(args, segment, (c - 1) * args.ratio, 0, d, candidates);
    }
    add_candidates(args, segment, c * args.ratio, d, d, candidates);
  } else {
    add_candidates(args, segment, c * args.ratio, 0, d, candidates);
  }
  std::vector<float> row(static_cast<std::size_t>(d));
  pool(numerics, candidates, d, row.data());
  rms_row(numerics, row.data(), args.norm, d, args.eps, row.data());
  rotate(rotation_at(c * args.ratio, args.inv_freq, Turn::kForward), row.data() + d - kRopeDim);
  if (numerics == Numerics::kNative) {
    round_bf16_row(row.data() + d - kRopeDim, kRopeDim);
    if (args.kind == CompressedKind::kMain) {
      act_sim_64(row.data(), d - kRopeDim);
    } else {
      hadamard_128(row.data());
      fp4_sim_32(row.data(), d);
    }
  }
  store_row(args.out.format, d, row.data(), args.out.row(segment.slot, c));
}

void append_state(const CompressArgs& args, const Segment& segment) {
  const std::int32_t first = std::max(0, segment.n_rows - args.state.ring_rows);
  for (std::int32_t i = first; i < segment.n_rows; ++i) {
    const Position p = segment.first_position + i;
    const TokenState state = state_of(args, segment, p);
    auto* row = static_cast<float*>(ring_row(args.state, segment.slot, p));
    std::copy(state.values, state.values + args.width, row);
    std::copy(state.scores.begin(), state.scores.end(), row + args.width);
  }
}

}  // namespace

void compress(Numerics numerics, const CompressArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    const Position end = segment.first_position + segment.n_rows;
    for (Position c = segment.first_position / args.ratio; c < end / args.ratio; ++c) {
      emit_row(numerics, args, segment, c);
    }
    append_state(args, segment);
  }
}

}  // namespace tandem::cpu::reference
