// Manifold-constrained hyper-connections. SOURCE: model.md 2.2, traps T11-T15.
#include <vector>

#include "compute/cpu/common/sinkhorn.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {
namespace {

// m = (fn * v) / rms(v) for the flattened streams v of one token.
std::vector<double> mixes_of(const float* v, std::int64_t n, const float* fn, std::int64_t n_mixes,
                             float eps) {
  const double scale = inverse_rms(v, n, eps);
  std::vector<double> mixes(static_cast<std::size_t>(n_mixes));
  for (std::int64_t m = 0; m < n_mixes; ++m) {
    mixes[static_cast<std::size_t>(m)] = dot(fn + m * n, v, n) * scale;
  }
  return mixes;
}

// out = sum_i gate[i] * stream i.
void collapse(Numerics numerics, const double* gates, const float* streams, std::int64_t hc_mult,
              std::int64_t hidden, float* out) {
  for (std::int64_t d = 0; d < hidden; ++d) {
    double sum = 0;
    for (std::int64_t i = 0; i < hc_mult; ++i) {
      sum += gates[i] * static_cast<double>(streams[i * hidden + d]);
    }
    out[d] = rounded(numerics, sum);
  }
}

}  // namespace

void hc_pre(Numerics numerics, const kernels::HcPreArgs& args) {
  const int n = args.hc_mult;
  const std::int64_t flat = std::int64_t{n} * args.hidden;
  std::vector<double> pre(static_cast<std::size_t>(n));
  std::vector<double> post(static_cast<std::size_t>(n));
  std::vector<double> comb(static_cast<std::size_t>(n * n));
  std::vector<float> y(static_cast<std::size_t>(args.hidden));
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    const float* streams = args.streams + t * flat;
    const std::vector<double> mixes = mixes_of(streams, flat, args.fn, (2 + n) * n, args.norm_eps);
    hc_gates(n, args.sinkhorn_iters, static_cast<double>(args.hc_eps), mixes.data(), args.scale,
             args.base, pre.data(), post.data(), comb.data());
    for (int i = 0; i < n; ++i) {
      args.post[t * n + i] = static_cast<float>(post[static_cast<std::size_t>(i)]);
    }
    for (int i = 0; i < n * n; ++i) {
      args.comb[t * n * n + i] = static_cast<float>(comb[static_cast<std::size_t>(i)]);
    }
    collapse(numerics, pre.data(), streams, n, args.hidden, y.data());
    rms_row(numerics, y.data(), args.norm, args.hidden, args.norm_eps, args.out + t * args.hidden);
  }
}

void hc_post(Numerics numerics, const kernels::HcPostArgs& args) {
  const std::int64_t n = args.hc_mult;
  std::vector<double> old(static_cast<std::size_t>(n));
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    const float* post = args.post + t * n;
    const float* comb = args.comb + t * n * n;
    float* streams = args.streams + t * n * args.hidden;
    for (std::int64_t d = 0; d < args.hidden; ++d) {
      const auto o = static_cast<double>(
          rounded(numerics, static_cast<double>(args.sublayer[t * args.hidden + d])));
      for (std::int64_t i = 0; i < n; ++i) {
        old[static_cast<std::size_t>(i)] = static_cast<double>(streams[i * args.hidden + d]);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = static_cast<double>(post[j]) * o;
        for (std::int64_t i = 0; i < n; ++i) {  // column j: comb is used transposed (T11)
          sum += static_cast<double>(comb[i * n + j]) * old[static_cast<std::size_t>(i)];
        }
        streams[j * args.hidden + d] = rounded(numerics, sum);
      }
    }
  }
}

void hc_head(Numerics numerics, const kernels::HcHeadArgs& args) {
  const int n = args.hc_mult;
  const std::int64_t flat = std::int64_t{n} * args.hidden;
  std::vector<double> gates(static_cast<std::size_t>(n));
  std::vector<float> collapsed(static_cast<std::size_t>(args.hidden));
  for (std::int64_t r = 0; r < args.n_rows; ++r) {
    const float* streams = args.streams + args.rows[r] * flat;
    const std::vector<double> mixes = mixes_of(streams, flat, args.fn, n, args.norm_eps);
    for (std::size_t i = 0; i < gates.size(); ++i) {
      gates[i] = sigmoid(mixes[i] * static_cast<double>(args.scale[0]) +
                         static_cast<double>(args.base[i])) +
                 static_cast<double>(args.hc_eps);
    }
    collapse(numerics, gates.data(), streams, n, args.hidden, collapsed.data());
    if (args.collapsed != nullptr) {
      std::copy(collapsed.begin(), collapsed.end(), args.collapsed + r * args.hidden);
    }
    rms_row(numerics, collapsed.data(), args.norm, args.hidden, args.norm_eps,
            args.out + r * args.hidden);
  }
}

}  // namespace tandem::cpu::reference
