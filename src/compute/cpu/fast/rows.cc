// Ops on single rows: embedding, streams, norms, linear layers, query heads, KV rows, router.
#include <algorithm>
#include <cmath>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/router.h"
#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/product.h"
#include "compute/cpu/fast/simd_rows.h"

namespace tandem::cpu::fast {

using kernels::Segment;
using tensor::kHeadDim;
using tensor::kNopeDim;
using tensor::kRopeDim;

const Segment& segment_of(const kernels::StepRows& rows, std::int64_t t) {
  const Segment* end = rows.segments + rows.n_segments;
  const Segment* after = std::upper_bound(
      rows.segments, end, t, [](std::int64_t row, const Segment& s) { return row < s.first_row; });
  return *(after - 1);
}

void embed(Context& context, const kernels::EmbedArgs& args) {
  context.for_each(args.rows.n_tokens, 2 * args.hidden, [&](std::int64_t t, int) {
    float* first = args.streams + t * args.hc_mult * args.hidden;
    widen_bf16(args.table + std::int64_t{args.rows.tokens[t]} * args.hidden, args.hidden, first);
    for (std::int64_t s = 1; s < args.hc_mult; ++s) {
      std::copy(first, first + args.hidden, first + s * args.hidden);
    }
  });
}

void rms_norm(Context& context, const kernels::RmsNormArgs& args) {
  context.for_each(args.n_rows, args.dim, [&](std::int64_t r, int) {
    norm_row(args.x + r * args.dim, args.weight, args.dim, args.eps, context.native(),
             args.out + r * args.dim);
  });
}

void stream_mean(Context& context, const kernels::StreamMeanArgs& args) {
  float gates[kMaxStreams];
  std::fill_n(gates, args.hc_mult, 1.0F);
  context.for_each(args.n_tokens, 4 * args.hidden, [&](std::int64_t t, int) {
    float* out = args.out + t * args.out_stride;
    weighted_sum(gates, args.streams + t * args.hc_mult * args.hidden, args.hc_mult, args.hidden,
                 false, out);
    scale_row(out, 1.0F / static_cast<float>(args.hc_mult), args.hidden, context.native(), out);
  });
}

void stream_add(Context& context, const kernels::StreamAddArgs& args) {
  context.for_each(std::int64_t{args.n_tokens} * args.hc_mult, args.hidden,
                   [&](std::int64_t i, int) {
                     add_row(args.e + i / args.hc_mult * args.hidden, args.hidden, context.native(),
                             args.streams + i * args.hidden);
                   });
}

void linear(Context& context, const kernels::LinearArgs& args) {
  using kernels::LinearKind;
  const bool quantise = context.native() &&
                        (args.kind == LinearKind::kQuantised || args.kind == LinearKind::kPartial);
  const bool round =
      context.native() && (args.kind == LinearKind::kQuantised || args.kind == LinearKind::kBf16);
  pack_inputs(context, args.x, args.x_stride, args.n_rows, args.w.format, args.w.cols, quantise,
              context.inputs, context.input_rows);
  multiply(context, args.w, context.input_rows.data(), args.n_rows, round, args.out,
           args.out_stride);
}

void query(Context& context, const kernels::QueryArgs& args) {
  context.for_each(args.rows.n_tokens, 3 * kHeadDim * args.n_heads, [&](std::int64_t t, int) {
    const Segment& segment = segment_of(args.rows, t);
    const Rotation rotation = rotation_at(segment.first_position + (t - segment.first_row),
                                          args.inv_freq, Turn::kForward);
    for (std::int64_t h = 0; h < args.n_heads; ++h) {
      float* q = args.q + (t * args.n_heads + h) * kHeadDim;
      const float mean = sum_of_squares(q, kHeadDim) / kHeadDim;
      scale_row(q, 1.0F / std::sqrt(mean + args.eps), kHeadDim, context.native(), q);
      rotate(rotation, q + kNopeDim);
      if (context.native()) {
        round_row(q + kNopeDim, kRopeDim);
      }
    }
  });
}

void kv(Context& context, const kernels::KvArgs& args) {
  context.for_each(args.rows.n_tokens, 6 * kHeadDim, [&](std::int64_t t, int) {
    const Segment& segment = segment_of(args.rows, t);
    float* row = args.kv + t * kHeadDim;
    norm_row(row, args.norm, kHeadDim, args.eps, context.native(), row);
    rotate(rotation_at(segment.first_position + (t - segment.first_row), args.inv_freq,
                       Turn::kForward),
           row + kNopeDim);
    if (context.native()) {
      round_row(row + kNopeDim, kRopeDim);
      quantise_row(row, kNopeDim, 64, row);
    }
  });
}

void window_append(Context& context, const kernels::WindowAppendArgs& args) {
  context.for_each(args.rows.n_tokens, 4 * kHeadDim, [&](std::int64_t t, int) {
    const Segment& segment = segment_of(args.rows, t);
    const std::int64_t i = t - segment.first_row;
    // Older rows of a long segment share a ring place with later ones: the last one stays.
    if (i + args.window.ring_rows >= segment.n_rows) {
      store_row(args.format, kHeadDim, args.kv + t * kHeadDim,
                ring_row(args.window, segment.slot, segment.first_position + i));
    }
  });
}

void route(Context& context, const kernels::RouteArgs& args) {
  context.for_each(args.rows.n_tokens, 40 * args.n_experts,
                   [&](std::int64_t t, int) { route_token(args, t); });
}

}  // namespace tandem::cpu::fast
