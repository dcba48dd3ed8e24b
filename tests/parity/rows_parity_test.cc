// Ops that work row by row against the oracle: streams, hyper-connections, norms, queries, router.
#include <gtest/gtest.h>

#include "compute/cpu/cpu_kernels.h"
#include "tests/parity/random_inputs.h"
#include "tests/parity/subject.h"
#include "tests/parity/tolerance.h"

namespace tandem::parity {
namespace {

using kernels::Numerics;
using kernels::Segment;

constexpr int kStreams = 4;

class Rows : public testing::TestWithParam<Numerics> {
 protected:
  Numerics numerics() const { return GetParam(); }

  std::unique_ptr<kernels::Kernels> oracle_ = cpu::make_reference_kernels(GetParam());
  std::unique_ptr<kernels::Kernels> fast_ = make_subject(GetParam());
};

struct HcOutputs {
  std::vector<float> out;
  std::vector<float> post;
  std::vector<float> comb;
};

HcOutputs run_hc_pre(kernels::Kernels& ops, std::int32_t n_tokens, std::int32_t hidden) {
  Inputs inputs(static_cast<std::uint32_t>(n_tokens + hidden));
  const std::int64_t flat = std::int64_t{kStreams} * hidden;
  const std::vector<float> streams = inputs.bf16_floats(n_tokens * flat, 3);
  const std::vector<float> fn =
      inputs.floats(24 * flat, 1.0F / std::sqrt(static_cast<float>(flat)));
  const std::vector<float> base = inputs.floats(24, 0.5F);
  const std::vector<float> scale = inputs.floats(3, 1);
  const auto norm = inputs.bf16(hidden, 1, 0.2F);
  HcOutputs result{poisoned(std::int64_t{n_tokens} * hidden), poisoned(n_tokens * 4),
                   poisoned(n_tokens * 16)};
  kernels::HcPreArgs args;
  args.n_tokens = n_tokens;
  args.hidden = hidden;
  args.hc_mult = kStreams;
  args.sinkhorn_iters = 20;
  args.norm_eps = 1e-6F;
  args.hc_eps = 1e-6F;
  args.streams = streams.data();
  args.fn = fn.data();
  args.base = base.data();
  args.scale = scale.data();
  args.norm = norm.data();
  args.out = result.out.data();
  args.post = result.post.data();
  args.comb = result.comb.data();
  ops.hc_pre(args);
  return result;
}

TEST_P(Rows, HyperConnectionEntry) {
  const std::pair<int, int> shapes[] = {{1, 256}, {5, 256}, {3, 37}, {2, 4096}};
  for (const auto& shape : shapes) {
    const HcOutputs expected = run_hc_pre(*oracle_, shape.first, shape.second);
    const HcOutputs actual = run_hc_pre(*fast_, shape.first, shape.second);
    expect_rows_near(actual.out, expected.out, shape.second, row_bound(numerics()), "out");
    expect_rows_near(actual.post, expected.post, 4, kFloatRow, "post");  // never rounded
    expect_rows_near(actual.comb, expected.comb, 16, kFloatRow, "comb");
  }
}

std::vector<float> run_hc_post(kernels::Kernels& ops, std::int32_t n_tokens, std::int32_t hidden) {
  Inputs inputs(static_cast<std::uint32_t>(7 * n_tokens + hidden));
  const std::int64_t flat = std::int64_t{kStreams} * hidden;
  std::vector<float> streams = inputs.bf16_floats(n_tokens * flat, 3);
  streams.resize(streams.size() + kCanaries, kPoison);
  const std::vector<float> sublayer = inputs.floats(std::int64_t{n_tokens} * hidden);
  const std::vector<float> post = inputs.floats(n_tokens * 4);
  const std::vector<float> comb = inputs.floats(n_tokens * 16);
  ops.hc_post(
      {n_tokens, hidden, kStreams, sublayer.data(), post.data(), comb.data(), streams.data()});
  return streams;
}

TEST_P(Rows, HyperConnectionExit) {
  const std::pair<int, int> shapes[] = {{1, 256}, {5, 256}, {3, 37}};
  for (const auto& shape : shapes) {
    expect_rows_near(run_hc_post(*fast_, shape.first, shape.second),
                     run_hc_post(*oracle_, shape.first, shape.second), shape.second,
                     row_bound(numerics()), "streams");
  }
}

std::pair<std::vector<float>, std::vector<float>> run_hc_head(kernels::Kernels& ops,
                                                              std::int32_t hidden) {
  Inputs inputs(static_cast<std::uint32_t>(hidden));
  const std::int64_t flat = std::int64_t{kStreams} * hidden;
  const std::vector<float> streams = inputs.bf16_floats(6 * flat, 3);
  const std::vector<float> fn = inputs.floats(4 * flat, 1.0F / std::sqrt(static_cast<float>(flat)));
  const std::vector<float> base = inputs.floats(4);
  const std::vector<float> scale = inputs.floats(1);
  const auto norm = inputs.bf16(hidden, 1, 0.2F);
  const std::vector<std::int32_t> rows = {5, 0, 3};
  std::vector<float> collapsed = poisoned(3 * hidden);
  std::vector<float> out = poisoned(3 * hidden);
  ops.hc_head({3, hidden, kStreams, 1e-6F, 1e-6F, streams.data(), rows.data(), fn.data(),
               base.data(), scale.data(), norm.data(), collapsed.data(), out.data()});
  std::vector<float> only_out = poisoned(3 * hidden);
  ops.hc_head({3, hidden, kStreams, 1e-6F, 1e-6F, streams.data(), rows.data(), fn.data(),
               base.data(), scale.data(), norm.data(), nullptr, only_out.data()});
  EXPECT_EQ(0, std::memcmp(out.data(), only_out.data(), out.size() * sizeof(float)));
  return {collapsed, out};
}

TEST_P(Rows, HeadCollapse) {
  for (const int hidden : {256, 37}) {
    const auto expected = run_hc_head(*oracle_, hidden);
    const auto actual = run_hc_head(*fast_, hidden);
    expect_rows_near(actual.first, expected.first, hidden, row_bound(numerics()), "collapsed");
    expect_rows_near(actual.second, expected.second, hidden, row_bound(numerics()), "out");
  }
}

TEST_P(Rows, EmbeddingIsExact) {
  Inputs inputs(5);
  const std::int32_t hidden = 43;
  const auto table = inputs.bf16(11 * hidden, 0, 1);
  const std::vector<TokenId> tokens = {10, 0, 7};
  const std::vector<Segment> segment = {{0, 0, 3, 0}};
  std::vector<float> expected = poisoned(3 * kStreams * hidden);
  std::vector<float> actual = expected;
  kernels::EmbedArgs args{
      {3, 1, tokens.data(), segment.data()}, table.data(), hidden, kStreams, expected.data()};
  oracle_->embed(args);
  args.streams = actual.data();
  fast_->embed(args);
  expect_rows_near(actual, expected, hidden, 0, "embed");
}

TEST_P(Rows, RmsNorm) {
  for (const int dim : {512, 256, 45}) {
    Inputs inputs(static_cast<std::uint32_t>(dim));
    const auto weight = inputs.bf16(dim, 1, 0.3F);
    std::vector<float> x = inputs.bf16_floats(4 * dim, 2);
    std::vector<float> expected = poisoned(4 * dim);
    std::vector<float> actual = poisoned(4 * dim);
    oracle_->rms_norm({4, dim, 1e-6F, x.data(), weight.data(), expected.data()});
    fast_->rms_norm({4, dim, 1e-6F, x.data(), weight.data(), actual.data()});
    expect_rows_near(actual, expected, dim, row_bound(numerics()), "rms_norm");
    x.resize(x.size() + kCanaries, kPoison);
    fast_->rms_norm({4, dim, 1e-6F, x.data(), weight.data(), x.data()});
    expect_rows_near(x, actual, dim, 0, "rms_norm in place");
  }
}

TEST_P(Rows, StreamMeanAndAdd) {
  Inputs inputs(8);
  const std::int32_t hidden = 300;
  const std::vector<float> streams = inputs.bf16_floats(3 * kStreams * hidden);
  const std::vector<float> e = inputs.bf16_floats(3 * hidden);
  std::vector<float> means[2];
  std::vector<float> sums[2];
  for (int i = 0; i < 2; ++i) {
    kernels::Kernels& ops = i == 0 ? *oracle_ : *fast_;
    means[i] = poisoned(3 * hidden);
    ops.stream_mean({3, hidden, kStreams, streams.data(), means[i].data(), hidden});
    sums[i] = streams;
    sums[i].resize(sums[i].size() + kCanaries, kPoison);
    ops.stream_add({3, hidden, kStreams, e.data(), sums[i].data()});
  }
  expect_rows_near(means[1], means[0], hidden, row_bound(numerics()), "mean");
  expect_rows_near(sums[1], sums[0], hidden, row_bound(numerics()), "add");
}

TEST_P(Rows, QueryHeadsAndKvRows) {
  Inputs inputs(9);
  const std::vector<Segment> segments = {{1, 0, 2, 1000000}, {0, 2, 3, 5}};
  const kernels::StepRows rows{5, 2, nullptr, segments.data()};
  const std::vector<float> inv_freq = inputs.floats(32, 0.3F);
  const auto norm = inputs.bf16(512, 1, 0.2F);
  const std::vector<float> q = inputs.bf16_floats(5 * 3 * 512, 4);
  const std::vector<float> kv = inputs.bf16_floats(5 * 512, 4);
  std::vector<float> qs[2];
  std::vector<float> kvs[2];
  for (int i = 0; i < 2; ++i) {
    kernels::Kernels& ops = i == 0 ? *oracle_ : *fast_;
    qs[i] = q;
    qs[i].resize(q.size() + kCanaries, kPoison);
    kvs[i] = kv;
    kvs[i].resize(kv.size() + kCanaries, kPoison);
    ops.query({rows, 3, 1e-6F, inv_freq.data(), qs[i].data()});
    ops.kv({rows, 1e-6F, norm.data(), inv_freq.data(), kvs[i].data()});
  }
  expect_rows_near(qs[1], qs[0], 512, row_bound(numerics()), "query");
  expect_rows_near(kvs[1], kvs[0], 512, row_bound(numerics()), "kv");
}

TEST_P(Rows, IndexQuery) {
  Inputs inputs(10);
  const std::vector<Segment> segments = {{1, 0, 2, 77}, {0, 2, 3, 5}};
  const std::vector<float> inv_freq = inputs.floats(32, 0.3F);
  const std::vector<float> iq = inputs.bf16_floats(5 * 6 * 128, 4);
  std::vector<float> results[2];
  for (int i = 0; i < 2; ++i) {
    kernels::Kernels& ops = i == 0 ? *oracle_ : *fast_;
    results[i] = iq;
    results[i].resize(iq.size() + kCanaries, kPoison);
    ops.index_query({{5, 2, nullptr, segments.data()}, 6, inv_freq.data(), results[i].data()});
  }
  expect_rows_near(results[1], results[0], 128, row_bound(numerics()), "index query");
}

TEST_P(Rows, RouterChoosesTheSameExperts) {
  Inputs inputs(11);
  const std::int32_t n_experts = 16;
  const std::int32_t n_tokens = 50;
  const std::vector<float> logits = inputs.floats(std::int64_t{n_tokens} * n_experts, 3);
  const std::vector<float> bias = inputs.floats(n_experts, 0.5F);
  const std::vector<Segment> segment = {{0, 0, n_tokens, 0}};
  std::vector<std::int32_t> experts[2];
  std::vector<float> weights[2];
  for (int i = 0; i < 2; ++i) {
    kernels::Kernels& ops = i == 0 ? *oracle_ : *fast_;
    experts[i].assign(n_tokens * 4, -1);
    weights[i] = poisoned(n_tokens * 4);
    kernels::RouteArgs args;
    args.rows = {n_tokens, 1, nullptr, segment.data()};
    args.n_experts = n_experts;
    args.top_k = 4;
    args.routed_scaling = 1.5F;
    args.logits = logits.data();
    args.bias = bias.data();
    args.experts = experts[i].data();
    args.weights = weights[i].data();
    ops.route(args);
  }
  EXPECT_EQ(experts[0], experts[1]);
  expect_rows_near(weights[1], weights[0], 4, kFloatRow, "weights");
}

INSTANTIATE_TEST_SUITE_P(Both, Rows, testing::Values(Numerics::kReference, Numerics::kNative),
                         [](const auto& test) {
                           return test.param == Numerics::kNative ? "native" : "reference";
                         });

}  // namespace
}  // namespace tandem::parity
