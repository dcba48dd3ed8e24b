// linear and experts against the oracle: every format, kind, number of rows and odd width.
#include <gtest/gtest.h>

#include "compute/cpu/cpu_kernels.h"
#include "compute/cpu/reference/weight_row.h"
#include "tests/parity/random_inputs.h"
#include "tests/parity/subject.h"
#include "tests/parity/tolerance.h"

namespace tandem::parity {
namespace {

using kernels::LinearKind;
using kernels::Numerics;
using tensor::WeightFormat;

struct Shape {
  WeightFormat format;
  std::int64_t rows;
  std::int64_t cols;
};

class Linear : public testing::TestWithParam<Shape> {};

std::vector<float> run_linear(kernels::Kernels& ops, const Weight& w, const std::vector<float>& x,
                              std::int64_t n_rows, LinearKind kind) {
  const std::int64_t x_stride = w.view.cols + 3;  // rows need not touch
  const std::int64_t out_stride = w.view.rows + 5;
  std::vector<float> out = poisoned(n_rows * out_stride);
  ops.linear({n_rows, x.data(), x_stride, w.view, kind, out.data(), out_stride});
  return out;
}

// sum |w x| of one output: the scale of its rounding errors.
double sum_of_sizes(const std::vector<float>& w, const float* x) {
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    sum += std::fabs(static_cast<double>(w[i]) * static_cast<double>(x[i]));
  }
  return sum;
}

TEST_P(Linear, IsWithinTheSummationBound) {
  const Shape shape = GetParam();
  for (const Numerics numerics : {Numerics::kReference, Numerics::kNative}) {
    const auto oracle = cpu::make_reference_kernels(numerics);
    const auto fast = make_subject(numerics);
    for (const std::int64_t n_rows : {1, 2, 3, 4, 7, 67}) {
      Inputs inputs(static_cast<std::uint32_t>(shape.rows * 31 + shape.cols + n_rows));
      const Weight w = inputs.weight(shape.format, shape.rows, shape.cols);
      const std::vector<float> x = inputs.bf16_floats(n_rows * (shape.cols + 3));
      for (const LinearKind kind :
           {LinearKind::kQuantised, LinearKind::kPartial, LinearKind::kBf16, LinearKind::kF32}) {
        const bool rounds = numerics == Numerics::kNative &&
                            (kind == LinearKind::kQuantised || kind == LinearKind::kBf16);
        const std::vector<float> expected = run_linear(*oracle, w, x, n_rows, kind);
        const std::vector<float> actual = run_linear(*fast, w, x, n_rows, kind);
        check_canaries(actual);
        std::vector<float> row(size(shape.cols));
        for (std::int64_t o = 0; o < shape.rows; ++o) {
          cpu::reference::decode_weight_row(w.view, o, row.data());
          for (std::int64_t r = 0; r < n_rows; ++r) {
            // act_quant moves an input by at most a sixteenth, so 1.1 covers the quantised sizes.
            const double sizes = 1.1 * sum_of_sizes(row, x.data() + r * (shape.cols + 3));
            const std::size_t i = size(r * (shape.rows + 5) + o);
            const auto want = static_cast<double>(expected[i]);
            const double bound =
                dot_bound(shape.cols, sizes) + (rounds ? bf16_step(want) : 0.0) + 1e-30;
            ASSERT_NEAR(actual[i], want, bound)
                << "row " << r << " of " << n_rows << ", output " << o;
          }
        }
        for (std::int64_t r = 0; r < n_rows; ++r) {
          for (std::int64_t i = shape.rows; i < shape.rows + 5; ++i) {
            ASSERT_TRUE(std::isnan(actual[size(r * (shape.rows + 5) + i)])) << "between rows";
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Linear,
    testing::Values(Shape{WeightFormat::kF32, 24, 1024}, Shape{WeightFormat::kF32, 5, 37},
                    Shape{WeightFormat::kBf16, 64, 256}, Shape{WeightFormat::kBf16, 131, 83},
                    Shape{WeightFormat::kFp8, 256, 256}, Shape{WeightFormat::kFp8, 130, 200},
                    Shape{WeightFormat::kFp8, 61, 1333}, Shape{WeightFormat::kFp4, 128, 256},
                    Shape{WeightFormat::kFp4, 53, 96}, Shape{WeightFormat::kFp4, 50, 1056}));

struct ExpertShape {
  std::int32_t n_tokens;
  std::int32_t hidden;
  std::int32_t inter;
  std::int32_t top_k;
};

constexpr int kExperts = 6;

// Experts of one stack lie one after the other.
kernels::ExpertStack stack_of(const Weight& all, std::int64_t rows) {
  kernels::ExpertStack stack;
  stack.first = all.view;
  stack.first.rows = rows;
  stack.data_stride_bytes = rows * all.view.cols / 2;
  stack.scale_stride_bytes = rows * (all.view.cols / 32);
  return stack;
}

class Experts : public testing::TestWithParam<ExpertShape> {};

TEST_P(Experts, MatchTheOracle) {
  const ExpertShape shape = GetParam();
  for (const Numerics numerics : {Numerics::kReference, Numerics::kNative}) {
    Inputs inputs(static_cast<std::uint32_t>(shape.n_tokens + shape.hidden));
    const Weight w1 = inputs.weight(WeightFormat::kFp4, kExperts * shape.inter, shape.hidden);
    const Weight w3 = inputs.weight(WeightFormat::kFp4, kExperts * shape.inter, shape.hidden);
    const Weight w2 = inputs.weight(WeightFormat::kFp4, kExperts * shape.hidden, shape.inter);
    const Weight s1 = inputs.weight(WeightFormat::kFp8, shape.inter, shape.hidden);
    const Weight s3 = inputs.weight(WeightFormat::kFp8, shape.inter, shape.hidden);
    const Weight s2 = inputs.weight(WeightFormat::kFp8, shape.hidden, shape.inter);
    // Gates reach the clamp of 10 in some places only.
    const std::vector<float> x =
        inputs.bf16_floats(std::int64_t{shape.n_tokens} * shape.hidden, 4.0F);
    std::vector<std::int32_t> experts;
    std::vector<float> weights;
    for (std::int32_t t = 0; t < shape.n_tokens; ++t) {
      const int first = inputs.integer(0, kExperts - 1);
      for (std::int32_t k = 0; k < shape.top_k; ++k) {
        experts.push_back((first + 5 * k) % kExperts);
        weights.push_back(std::fabs(inputs.normal(0.5F)));
      }
    }
    kernels::ExpertsArgs args;
    args.n_tokens = shape.n_tokens;
    args.hidden = shape.hidden;
    args.top_k = shape.top_k;
    args.swiglu_limit = 10;
    args.x = x.data();
    args.experts = experts.data();
    args.weights = weights.data();
    args.w1 = stack_of(w1, shape.inter);
    args.w3 = stack_of(w3, shape.inter);
    args.w2 = stack_of(w2, shape.hidden);
    args.shared_w1 = s1.view;
    args.shared_w3 = s3.view;
    args.shared_w2 = s2.view;
    std::vector<float> expected = poisoned(std::int64_t{shape.n_tokens} * shape.hidden);
    args.out = expected.data();
    cpu::make_reference_kernels(numerics)->experts(args);
    std::vector<float> actual = poisoned(std::int64_t{shape.n_tokens} * shape.hidden);
    args.out = actual.data();
    make_subject(numerics)->experts(args);
    expect_rows_near(actual, expected, shape.hidden, row_bound(numerics), "experts");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Experts,
                         testing::Values(ExpertShape{1, 256, 128, 4}, ExpertShape{3, 256, 128, 2},
                                         ExpertShape{40, 128, 96, 3}, ExpertShape{9, 352, 160, 4}));

}  // namespace
}  // namespace tandem::parity
