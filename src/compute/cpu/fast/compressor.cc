// Compressed rows: every row that the step completes is one work item; the step's own state goes to
// the ring after all of them. model.md 2.6.
#include <algorithm>
#include <vector>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/simd_rows.h"

namespace tandem::cpu::fast {
namespace {

using kernels::CompressArgs;
using kernels::CompressedKind;
using kernels::Segment;
using tensor::kRopeDim;

void copy_sum(const float* a, const float* b, std::int64_t n, float* out) {
  std::copy(a, a + n, out);
  add_row(b, n, false, out);
}

// The candidates of one pool, as pointers to d values and d logits each. Logits of this step's
// tokens still lack ape: they are completed in `sums`, which has room for all candidates.
struct Candidates {
  std::vector<const float*>& values;
  std::vector<const float*>& logits;
  float* sums;

  void add(const CompressArgs& args, const Segment& segment, Position first, std::int64_t offset,
           std::int64_t d) {
    for (Position p = first; p < first + args.ratio; ++p) {
      if (p < segment.first_position) {
        const auto* row = static_cast<const float*>(ring_row(args.state, segment.slot, p));
        values.push_back(row + offset);
        logits.push_back(row + args.width + offset);
        continue;
      }
      const std::int64_t t = segment.first_row + (p - segment.first_position);
      float* sum = sums + static_cast<std::int64_t>(logits.size()) * d;
      copy_sum(args.score + t * args.width + offset,
               args.ape + (p % args.ratio) * args.width + offset, d, sum);
      values.push_back(args.kv + t * args.width + offset);
      logits.push_back(sum);
    }
  }
};

void emit_row(const Context& context, const CompressArgs& args, const Segment& segment, Position c,
              ThreadScratch& scratch) {
  const bool overlap = args.ratio == 4;
  const std::int64_t d = overlap ? args.width / 2 : args.width;
  scratch.pointers.clear();
  scratch.more_pointers.clear();
  Candidates candidates{scratch.pointers, scratch.more_pointers,
                        scratch.first.floats(2 * args.ratio * d)};
  if (overlap && c > 0) {  // row 0 has no previous window (T18)
    candidates.add(args, segment, (c - 1) * args.ratio, 0, d);
  }
  candidates.add(args, segment, c * args.ratio, overlap ? d : 0, d);

  float* row = scratch.second.floats(d);
  const bool native = context.native();
  pool_rows(candidates.values.data(), candidates.logits.data(),
            static_cast<int>(candidates.values.size()), d, native, row);
  norm_row(row, args.norm, d, args.eps, native, row);
  float* tail = row + d - kRopeDim;
  rotate(rotation_at(c * args.ratio, args.inv_freq, Turn::kForward), tail);
  if (native) {
    round_row(tail, kRopeDim);
  }
  if (native && args.kind == CompressedKind::kMain) {
    quantise_row(row, d - kRopeDim, 64, row);
  }
  if (native && args.kind == CompressedKind::kIndex) {
    hadamard_128(row);
    fp4_sim_32(row, static_cast<int>(d));
  }
  store_row(args.out.format, static_cast<int>(d), row, args.out.row(segment.slot, c));
}

// Rows that segment completes start at this number.
Position first_emitted(const CompressArgs& args, const Segment& segment) {
  return segment.first_position / args.ratio;
}

std::int64_t n_emitted(const CompressArgs& args, const Segment& segment) {
  return (segment.first_position + segment.n_rows) / args.ratio - first_emitted(args, segment);
}

void append_token(const CompressArgs& args, std::int64_t t) {
  const Segment& segment = segment_of(args.rows, t);
  const std::int64_t i = t - segment.first_row;
  if (i + args.state.ring_rows < segment.n_rows) {
    return;  // a later row of this segment takes the same place
  }
  const Position p = segment.first_position + i;
  auto* row = static_cast<float*>(ring_row(args.state, segment.slot, p));
  std::copy(args.kv + t * args.width, args.kv + (t + 1) * args.width, row);
  copy_sum(args.score + t * args.width, args.ape + (p % args.ratio) * args.width, args.width,
           row + args.width);
}

}  // namespace

void compress(Context& context, const CompressArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    const Position first = first_emitted(args, segment);
    context.for_each(n_emitted(args, segment), std::int64_t{12} * args.ratio * args.width,
                     [&](std::int64_t i, int thread) {
                       emit_row(context, args, segment, first + i, context.scratch(thread));
                     });
  }
  context.for_each(args.rows.n_tokens, 2 * args.width,
                   [&](std::int64_t t, int) { append_token(args, t); });
}

}  // namespace tandem::cpu::fast
