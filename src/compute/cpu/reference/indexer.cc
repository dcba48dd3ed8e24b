// Index queries and the choice of compressed rows. SOURCE: model.md 2.7, 2.8.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {
namespace {

using kernels::Segment;
using tensor::kIndexDim;
using tensor::kRopeDim;

double index_score(const kernels::IndexSelectArgs& args, Numerics numerics, std::int64_t t,
                   const float* key) {
  const double factor = 1.0 / std::sqrt(static_cast<double>(kIndexDim) * args.n_heads);
  double score = 0;
  for (std::int64_t h = 0; h < args.n_heads; ++h) {
    const float* q = args.iq + (t * args.n_heads + h) * kIndexDim;
    const auto weight = static_cast<double>(
        rounded(numerics, static_cast<double>(args.iw[t * args.n_heads + h]) * factor));
    score += weight * std::max(0.0, dot(q, key, kIndexDim));
  }
  return score;
}

void select_rows(const kernels::IndexSelectArgs& args, Numerics numerics, std::int64_t t,
                 std::int32_t slot, std::int64_t n_visible) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(n_visible));
  std::iota(order.begin(), order.end(), 0);
  if (n_visible > args.top_k) {
    std::vector<double> scores(order.size());
    std::vector<float> key(kIndexDim);
    for (std::size_t c = 0; c < scores.size(); ++c) {
      load_row(args.keys.format, kIndexDim, args.keys.row(slot, static_cast<std::int64_t>(c)),
               key.data());
      scores[c] = index_score(args, numerics, t, key.data());
    }
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    order.resize(static_cast<std::size_t>(args.top_k));
    std::sort(order.begin(), order.end());
  }
  std::copy(order.begin(), order.end(), args.selected + t * args.top_k);
  args.n_selected[t] = static_cast<std::int32_t>(order.size());
}

}  // namespace

void index_query(Numerics numerics, const kernels::IndexQueryArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      const Rotation rotation =
          rotation_at(segment.first_position + i, args.inv_freq, Turn::kForward);
      for (std::int64_t h = 0; h < args.n_heads; ++h) {
        float* q = args.iq + ((std::int64_t{segment.first_row} + i) * args.n_heads + h) * kIndexDim;
        rotate(rotation, q + kIndexDim - kRopeDim);
        if (numerics == Numerics::kNative) {
          round_bf16_row(q + kIndexDim - kRopeDim, kRopeDim);
          hadamard_128(q);
          fp4_sim_32(q, kIndexDim);
        }
      }
    }
  }
}

void index_select(Numerics numerics, const kernels::IndexSelectArgs& args) {
  for (std::int32_t s = 0; s < args.rows.n_segments; ++s) {
    const Segment& segment = args.rows.segments[s];
    for (std::int32_t i = 0; i < segment.n_rows; ++i) {
      const Position p = segment.first_position + i;
      select_rows(args, numerics, segment.first_row + i, segment.slot, (p + 1) / args.ratio);
    }
  }
}

}  // namespace tandem::cpu::reference
