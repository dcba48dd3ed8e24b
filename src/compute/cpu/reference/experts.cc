// Router and experts. SOURCE: model.md 2.11, traps T29-T34.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "compute/cpu/common/router.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"
#include "compute/cpu/reference/weight_row.h"

namespace tandem::cpu::reference {
namespace {

using kernels::ExpertsArgs;
using tensor::WeightMatrix;

std::vector<double> multiply(const WeightMatrix& w, const float* x) {
  std::vector<float> row(static_cast<std::size_t>(w.cols));
  std::vector<double> out(static_cast<std::size_t>(w.rows));
  for (std::int64_t o = 0; o < w.rows; ++o) {
    decode_weight_row(w, o, row.data());
    out[static_cast<std::size_t>(o)] = dot(row.data(), x, w.cols);
  }
  return out;
}

// sum += w2 * (weight * silu(min(w1 x, limit)) * clamp(w3 x)); x is already quantised.
void add_expert(Numerics numerics, const ExpertsArgs& args, const WeightMatrix& w1,
                const WeightMatrix& w3, const WeightMatrix& w2, const float* x, float weight,
                std::vector<double>& sum) {
  const std::vector<double> gate = multiply(w1, x);
  const std::vector<double> up = multiply(w3, x);
  const auto limit = static_cast<double>(args.swiglu_limit);
  std::vector<float> hidden(gate.size());
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const double g = std::min(static_cast<double>(rounded(numerics, gate[i])), limit);
    const double u = std::clamp(static_cast<double>(rounded(numerics, up[i])), -limit, limit);
    hidden[i] = rounded(numerics, static_cast<double>(weight) * (g * sigmoid(g) * u));
  }
  if (numerics == Numerics::kNative) {
    act_quant_128(hidden.data(), static_cast<std::int64_t>(hidden.size()), hidden.data());
  }
  const std::vector<double> y = multiply(w2, hidden.data());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += y[i];
  }
}

}  // namespace

void experts(Numerics numerics, const ExpertsArgs& args) {
  std::vector<float> x(static_cast<std::size_t>(args.hidden));
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    const float* input = args.x + t * args.hidden;
    if (numerics == Numerics::kNative) {
      act_quant_128(input, args.hidden, x.data());
    } else {
      std::copy(input, input + args.hidden, x.begin());
    }
    std::vector<double> sum(x.size(), 0.0);
    for (std::int64_t k = 0; k < args.top_k; ++k) {
      const std::int32_t e = args.experts[t * args.top_k + k];
      add_expert(numerics, args, expert_of(args.w1, e), expert_of(args.w3, e),
                 expert_of(args.w2, e), x.data(), args.weights[t * args.top_k + k], sum);
    }
    add_expert(numerics, args, args.shared_w1, args.shared_w3, args.shared_w2, x.data(), 1.0F, sum);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      args.out[t * args.hidden + static_cast<std::int64_t>(i)] = static_cast<float>(sum[i]);
    }
  }
}

void route(const kernels::RouteArgs& args) {
  for (std::int64_t t = 0; t < args.rows.n_tokens; ++t) {
    route_token(args, t);
  }
}

}  // namespace tandem::cpu::reference
