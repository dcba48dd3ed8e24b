// The tensor-core kernels beyond what the other tests reach: their two shapes (few rows, many rows)
// must give the same bits, and stay at the oracle over more rows than one tile.
#include <gtest/gtest.h>

#include "compute/cpu/cpu_kernels.h"
#include "tests/parity/random_inputs.h"
#include "tests/parity/subject.h"
#include "tests/parity/tolerance.h"

namespace tandem::parity {
namespace {

using kernels::LinearKind;
using kernels::Numerics;
using tensor::WeightFormat;

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(0, std::memcmp(a.data(), b.data(), a.size() * sizeof(float))) << what;
}

// Whole steps and pieces around every number of rows at which another kernel takes over.
TEST(TensorCores, LinearIsTheSameForAnyNumberOfRows) {
  const std::int64_t n = 66;
  const std::int64_t outs = 150;
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kFp8, WeightFormat::kFp4}) {
    for (const std::int64_t cols : {128, 640}) {  // fewer blocks of k than parts, and uneven parts
      Inputs inputs(static_cast<std::uint32_t>(cols));
      const Weight w = inputs.weight(format, outs, cols);
      const std::vector<float> x = inputs.bf16_floats(n * cols);
      const auto ops = make_subject(Numerics::kNative);
      std::vector<float> whole = poisoned(n * outs);
      ops->linear({n, x.data(), cols, w.view, LinearKind::kPartial, whole.data(), outs});
      std::vector<float> expected = poisoned(n * outs);
      cpu::make_reference_kernels(Numerics::kNative)
          ->linear({n, x.data(), cols, w.view, LinearKind::kPartial, expected.data(), outs});
      expect_rows_near(whole, expected, outs, kFloatRow, "linear");
      for (const std::int64_t chunk : {1, 9, 17, 33, 65}) {
        std::vector<float> cut = poisoned(n * outs);
        for (std::int64_t r = 0; r < n; r += chunk) {
          ops->linear({std::min(chunk, n - r), x.data() + r * cols, cols, w.view,
                       LinearKind::kPartial, cut.data() + r * outs, outs});
        }
        expect_same_bits(cut, whole, "chunks of " + std::to_string(chunk));
      }
    }
  }
}

class ExpertFlow {
 public:
  static constexpr std::int32_t kTokens = 520;
  static constexpr std::int32_t kHidden = 128;
  static constexpr std::int32_t kInter = 384;  // three tiles of 128 outputs
  static constexpr std::int32_t kExperts = 5;
  static constexpr std::int32_t kTopK = 2;

  std::vector<float> run(kernels::Kernels& ops, std::int32_t chunk) {
    std::vector<float> out = poisoned(std::int64_t{kTokens} * kHidden);
    for (std::int32_t t = 0; t < kTokens; t += chunk) {
      kernels::ExpertsArgs args;
      args.n_tokens = std::min(chunk, kTokens - t);
      args.hidden = kHidden;
      args.top_k = kTopK;
      args.swiglu_limit = 10;
      args.x = x_.data() + t * kHidden;
      args.experts = experts_.data() + t * kTopK;
      args.weights = weights_.data() + t * kTopK;
      args.w1 = stack_of(w1_, kInter);
      args.w3 = stack_of(w3_, kInter);
      args.w2 = stack_of(w2_, kHidden);
      args.shared_w1 = s1_.view;
      args.shared_w3 = s3_.view;
      args.shared_w2 = s2_.view;
      args.out = out.data() + t * kHidden;
      ops.experts(args);
    }
    return out;
  }

 private:
  static kernels::ExpertStack stack_of(const Weight& all, std::int64_t rows) {
    return {{all.view.format, rows, all.view.cols, all.view.data, all.view.scales},
            rows * all.view.cols / 2,
            rows * (all.view.cols / 32)};
  }

  // Skewed: most tokens choose expert 0, some expert gets few.
  std::vector<std::int32_t> choose() {
    std::vector<std::int32_t> chosen;
    for (std::int32_t t = 0; t < kTokens; ++t) {
      const std::int32_t first = inputs_.integer(0, 3) > 0 ? 0 : inputs_.integer(1, 2);
      chosen.push_back(first);
      chosen.push_back(first == 0 ? inputs_.integer(1, 4) : inputs_.integer(3, 4));
    }
    return chosen;
  }

  Inputs inputs_{77};
  Weight w1_ = inputs_.weight(WeightFormat::kFp4, kExperts* kInter, kHidden);
  Weight w3_ = inputs_.weight(WeightFormat::kFp4, kExperts* kInter, kHidden);
  Weight w2_ = inputs_.weight(WeightFormat::kFp4, kExperts* kHidden, kInter);
  Weight s1_ = inputs_.weight(WeightFormat::kFp8, kInter, kHidden);
  Weight s3_ = inputs_.weight(WeightFormat::kFp8, kInter, kHidden);
  Weight s2_ = inputs_.weight(WeightFormat::kFp8, kHidden, kInter);
  std::vector<float> x_ = inputs_.bf16_floats(std::int64_t{kTokens} * kHidden, 4);
  std::vector<std::int32_t> experts_ = choose();
  std::vector<float> weights_ = inputs_.floats(std::int64_t{kTokens} * kTopK, 0.5F);
};

TEST(TensorCores, ExpertsAreTheSameForAnyNumberOfTokens) {
  ExpertFlow flow;
  const auto ops = make_subject(Numerics::kNative);
  const std::vector<float> whole = flow.run(*ops, ExpertFlow::kTokens);
  expect_rows_near(whole,
                   flow.run(*cpu::make_reference_kernels(Numerics::kNative), ExpertFlow::kTokens),
                   ExpertFlow::kHidden, kNativeRow, "experts");
  for (const std::int32_t chunk : {100, 512}) {
    expect_same_bits(flow.run(*ops, chunk), whole, "chunks of " + std::to_string(chunk));
  }
}

}  // namespace
}  // namespace tandem::parity
