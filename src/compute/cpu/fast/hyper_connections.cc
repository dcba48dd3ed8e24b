// Hyper-connections: the mixing product on all threads, then one token at a time. model.md 2.2.
#include <cmath>
#include <vector>

#include "compute/cpu/common/sinkhorn.h"
#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/product.h"
#include "compute/cpu/fast/simd_rows.h"
#include "foundation/base/check.h"

namespace tandem::cpu::fast {
namespace {

constexpr int kMaxMixes = (2 + kMaxStreams) * kMaxStreams;

// fn . v for every token; each result still lacks the factor 1 / rms(v).
const float* raw_mixes(Context& context, const float* fn, std::int64_t n_mixes,
                       std::int64_t n_tokens, std::int64_t flat) {
  const tensor::WeightMatrix w{tensor::WeightFormat::kF32, n_mixes, flat, fn, nullptr};
  float* out = context.results.floats(n_tokens * n_mixes);
  multiply(context, w, context.input_rows.data(), n_tokens, false, out, n_mixes);
  return out;
}

void scale_mixes(const float* raw, std::int64_t n_mixes, const float* v, std::int64_t flat,
                 float eps, double* mixes) {
  const float mean = sum_of_squares(v, flat) / static_cast<float>(flat);
  const double factor = 1.0 / std::sqrt(static_cast<double>(mean) + static_cast<double>(eps));
  for (std::int64_t m = 0; m < n_mixes; ++m) {
    mixes[m] = static_cast<double>(raw[m]) * factor;
  }
}

}  // namespace

void hc_pre(Context& context, const kernels::HcPreArgs& args) {
  const int n = args.hc_mult;
  TANDEM_CHECK(n <= kMaxStreams, "more residual streams than this build has room for");
  const std::int64_t n_mixes = std::int64_t{2 + n} * n;
  const std::int64_t flat = std::int64_t{n} * args.hidden;
  pack_inputs(context, args.streams, flat, args.n_tokens, tensor::WeightFormat::kF32, flat, false,
              context.inputs, context.input_rows);
  const float* raw = raw_mixes(context, args.fn, n_mixes, args.n_tokens, flat);
  context.for_each(args.n_tokens, 4 * flat, [&](std::int64_t t, int) {
    const float* streams = args.streams + t * flat;
    double mixes[kMaxMixes];
    double pre[kMaxStreams];
    double post[kMaxStreams];
    double comb[kMaxStreams * kMaxStreams];
    scale_mixes(raw + t * n_mixes, n_mixes, streams, flat, args.norm_eps, mixes);
    hc_gates(n, args.sinkhorn_iters, static_cast<double>(args.hc_eps), mixes, args.scale, args.base,
             pre, post, comb);
    float gates[kMaxStreams];
    for (int i = 0; i < n; ++i) {
      gates[i] = static_cast<float>(pre[i]);
      args.post[t * n + i] = static_cast<float>(post[i]);
    }
    for (int i = 0; i < n * n; ++i) {
      args.comb[t * n * n + i] = static_cast<float>(comb[i]);
    }
    float* out = args.out + t * args.hidden;
    weighted_sum(gates, streams, n, args.hidden, context.native(), out);
    norm_row(out, args.norm, args.hidden, args.norm_eps, context.native(), out);
  });
}

void hc_post(Context& context, const kernels::HcPostArgs& args) {
  const std::int64_t n = args.hc_mult;
  context.for_each(args.n_tokens, 6 * n * args.hidden, [&](std::int64_t t, int) {
    hc_exit(args.sublayer + t * args.hidden, args.post + t * n, args.comb + t * n * n, args.hc_mult,
            args.hidden, context.native(), args.streams + t * n * args.hidden);
  });
}

void hc_head(Context& context, const kernels::HcHeadArgs& args) {
  const int n = args.hc_mult;
  TANDEM_CHECK(n <= kMaxStreams, "more residual streams than this build has room for");
  const std::int64_t flat = std::int64_t{n} * args.hidden;
  const std::int64_t width = packed_stride(tensor::WeightFormat::kF32, flat);
  float* packed = context.inputs.floats(args.n_rows * width);
  context.input_rows.resize(static_cast<std::size_t>(args.n_rows));
  for (std::int64_t r = 0; r < args.n_rows; ++r) {
    pack_row(tensor::WeightFormat::kF32, args.streams + args.rows[r] * flat, flat,
             packed + r * width);
    context.input_rows[static_cast<std::size_t>(r)] = packed + r * width;
  }
  const float* raw = raw_mixes(context, args.fn, n, args.n_rows, flat);
  context.for_each(args.n_rows, 4 * flat, [&](std::int64_t r, int) {
    const float* streams = args.streams + args.rows[r] * flat;
    double mixes[kMaxStreams];
    float gates[kMaxStreams];
    scale_mixes(raw + r * n, n, streams, flat, args.norm_eps, mixes);
    for (int i = 0; i < n; ++i) {
      const double x =
          mixes[i] * static_cast<double>(args.scale[0]) + static_cast<double>(args.base[i]);
      gates[i] = static_cast<float>(1.0 / (1.0 + std::exp(-x)) + static_cast<double>(args.hc_eps));
    }
    float* out = args.out + r * args.hidden;
    weighted_sum(gates, streams, n, args.hidden, context.native(), out);
    if (args.collapsed != nullptr) {
      std::copy(out, out + args.hidden, args.collapsed + r * args.hidden);
    }
    norm_row(out, args.norm, args.hidden, args.norm_eps, context.native(), out);
  });
}

}  // namespace tandem::cpu::fast
