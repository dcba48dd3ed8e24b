// Query heads, the latent KV row and the raw window. SOURCE: model.md 2.3, 2.5.
#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {
namespace {

using kernels::Segment;
using tensor::kHeadDim;
using tensor::kNopeDim;
using tensor::kRopeDim;

void rotate_tail(Numerics numerics, const Rotation& rotation, float* tail) {
  rotate(rotation, tail);
  if (numerics == Numerics::kNative) {
    round_bf16_row(tail, kRopeDim);
  }
}

}  // namespace

void query(Numerics numerics, const kernels::QueryArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      const Rotation rotation =
          rotation_at(segment.first_position + i, args.inv_freq, Turn::kForward);
      for (std::int64_t h = 0; h < args.n_heads; ++h) {
        float* q = args.q + ((std::int64_t{segment.first_row} + i) * args.n_heads + h) * kHeadDim;
        const double scale = inverse_rms(q, kHeadDim, args.eps);
        for (int d = 0; d < kHeadDim; ++d) {
          q[d] = rounded(numerics, static_cast<double>(q[d]) * scale);
        }
        rotate_tail(numerics, rotation, q + kNopeDim);
      }
    }
  }
}

void kv(Numerics numerics, const kernels::KvArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      float* row = args.kv + (std::int64_t{segment.first_row} + i) * kHeadDim;
      rms_row(numerics, row, args.norm, kHeadDim, args.eps, row);
      rotate_tail(numerics, rotation_at(segment.first_position + i, args.inv_freq, Turn::kForward),
                  row + kNopeDim);
      if (numerics == Numerics::kNative) {
        act_sim_64(row, kNopeDim);
      }
    }
  }
}

void window_append(const kernels::WindowAppendArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    // Older rows of a long segment would only be overwritten by its last ring_rows.
    const std::int32_t first = std::max(0, segment.n_rows - args.window.ring_rows);
    for (std::int32_t i = first; i < segment.n_rows; ++i) {
      store_row(args.format, kHeadDim, args.kv + (std::int64_t{segment.first_row} + i) * kHeadDim,
                ring_row(args.window, segment.slot, segment.first_position + i));
    }
  }
}

}  // namespace tandem::cpu::reference
