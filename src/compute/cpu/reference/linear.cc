// Matrix products. SOURCE: model.md 2.0 lin8, lin4, linb, lin32.
#include <vector>

#include "compute/cpu/common/simulate.h"
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"
#include "compute/cpu/reference/weight_row.h"

namespace tandem::cpu::reference {

void linear(Numerics numerics, const kernels::LinearArgs& args) {
  using kernels::LinearKind;
  const bool quantised_kind =
      args.kind == LinearKind::kQuantised || args.kind == LinearKind::kPartial;
  const bool quantise_input = numerics == Numerics::kNative && quantised_kind;
  const bool round_output = args.kind == LinearKind::kQuantised || args.kind == LinearKind::kBf16;
  const std::int64_t cols = args.w.cols;
  std::vector<float> inputs(static_cast<std::size_t>(args.n_rows * cols));
  for (std::int64_t r = 0; r < args.n_rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* copy = inputs.data() + r * cols;
    if (quantise_input) {
      act_quant_128(x, cols, copy);
    } else {
      std::copy(x, x + cols, copy);
    }
  }
  std::vector<float> weights(static_cast<std::size_t>(cols));
  for (std::int64_t o = 0; o < args.w.rows; ++o) {
    decode_weight_row(args.w, o, weights.data());
    for (std::int64_t r = 0; r < args.n_rows; ++r) {
      const double sum = dot(inputs.data() + r * cols, weights.data(), cols);
      args.out[r * args.out_stride + o] =
          round_output ? rounded(numerics, sum) : static_cast<float>(sum);
    }
  }
}

}  // namespace tandem::cpu::reference
