// The golden micro-vectors of model.md Appendix A, and hand-computed rows of single ops.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compute/cpu/common/rotation.h"
#include "compute/cpu/common/router.h"
#include "compute/cpu/common/simulate.h"
#include "compute/cpu/common/sinkhorn.h"
#include "compute/cpu/cpu_kernels.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::cpu {
namespace {

TEST(HyperConnection, GatesMatchAppendixA) {
  double mixes[24];
  float base[24];
  for (int k = 0; k < 24; ++k) {
    mixes[k] = 0.3 * (((7 * k) % 11) - 5);
    base[k] = 0.01F * static_cast<float>(k) - 0.1F;
  }
  const float scale[3] = {0.5F, 0.8F, 1.2F};
  double pre[4];
  double post[4];
  double comb[16];
  hc_gates(4, 20, 1e-6, mixes, scale, base, pre, post, comb);
  const double expected_pre[4] = {.299434, .552309, .406128, .663740};
  const double expected_post[4] = {1.089758, .632958, 1.430084, .985001};
  const double expected_comb[16] = {.135355, .475575, .253714, .135355, .253714, .016994,
                                    .475576, .253714, .135355, .475575, .253714, .135355,
                                    .475576, .031854, .016994, .475575};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(pre[i], expected_pre[i], 1e-6);
    EXPECT_NEAR(post[i], expected_post[i], 1e-6);
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(comb[i], expected_comb[i], 1.5e-6) << i;
  }
}

TEST(HyperConnection, ExitUsesTheTransposedMatrix) {
  const auto ops = make_reference_kernels(kernels::Numerics::kReference);
  const float sublayer[1] = {10};
  const float post[4] = {1.089758F, .632958F, 1.430084F, .985001F};
  const float comb[16] = {.135355F, .475575F, .253714F, .135355F, .253714F, .016994F,
                          .475576F, .253714F, .135355F, .475575F, .253714F, .135355F,
                          .475576F, .031854F, .016994F, .475575F};
  float streams[4] = {1, 2, 3, 4};
  kernels::HcPostArgs args;
  args.n_tokens = 1;
  args.hidden = 1;
  args.hc_mult = 4;
  args.sublayer = sublayer;
  args.post = post;
  args.comb = comb;
  args.streams = streams;
  ops->hc_post(args);
  const float expected[4] = {13.84873F, 8.39329F, 16.33483F, 12.80116F};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(streams[i], expected[i], 2e-5F) << i;
  }
}

TEST(Router, SqrtSoftplusMatchesAppendixA) {
  const double table[][2] = {{-30, 3.05902e-7}, {-20, 4.53999e-5}, {-5, .0819472}, {-1, .559698},
                             {0, .832555},      {0.5, .986953},    {1, 1.145976},  {5, 2.237569},
                             {20, 4.472136},    {30, 5.477226}};
  for (const auto& row : table) {
    EXPECT_NEAR(sqrt_softplus(row[0]), row[1], row[1] * 2e-6) << row[0];
  }
  EXPECT_NEAR(sqrt_softplus(1000), std::sqrt(1000.0), 1e-9);
}

TEST(Router, BiasChoosesAndTiesGoToTheLowestId) {
  const float logits[6] = {1, 2, 2, 2, -3, 0};
  const float bias[6] = {0, 0, 0, 0, 9, 0};
  std::int32_t experts[3] = {-1, -1, -1};
  float weights[3] = {NAN, NAN, NAN};
  kernels::RouteArgs args;
  args.n_experts = 6;
  args.top_k = 3;
  args.routed_scaling = 1.5F;
  args.logits = logits;
  args.bias = bias;
  args.experts = experts;
  args.weights = weights;
  route_token(args, 0);
  EXPECT_EQ(experts[0], 4);
  EXPECT_EQ(experts[1], 1);
  EXPECT_EQ(experts[2], 2);
  const double low = sqrt_softplus(-3);
  const double high = sqrt_softplus(2);
  EXPECT_NEAR(weights[0], 1.5 * low / (low + 2 * high), 1e-6);
  EXPECT_NEAR(weights[1], 1.5 * high / (low + 2 * high), 1e-6);
}

TEST(Router, HashLayersReadTheTable) {
  const float logits[4] = {1, 5, 0, 0};
  const std::int32_t tid2eid[6] = {0, 1, 2, 3, 3, 0};
  const TokenId token = 2;
  std::int32_t experts[2] = {-1, -1};
  float weights[2] = {NAN, NAN};
  kernels::RouteArgs args;
  args.rows.tokens = &token;
  args.n_experts = 4;
  args.top_k = 2;
  args.routed_scaling = 1.5F;
  args.logits = logits;
  args.tid2eid = tid2eid;
  args.experts = experts;
  args.weights = weights;
  route_token(args, 0);
  EXPECT_EQ(experts[0], 3);
  EXPECT_EQ(experts[1], 0);
  EXPECT_NEAR(weights[0] + weights[1], 1.5F, 1e-6F);
}

TEST(Rotation, TurnsInterleavedPairsByTheFloatProduct) {
  float inv_freq[kRopePairs];
  for (int k = 0; k < kRopePairs; ++k) {
    inv_freq[k] = static_cast<float>(std::pow(10000.0, -k / 32.0));
  }
  EXPECT_NEAR(inv_freq[7], 0.133352143F, 1e-8F);  // Appendix A, table A
  const Position p = 1000003;
  float v[tensor::kRopeDim];
  for (int i = 0; i < tensor::kRopeDim; ++i) {
    v[i] = static_cast<float>(i + 1);
  }
  rotate(rotation_at(p, inv_freq, Turn::kForward), v);
  const float angle = 1000003.0F * inv_freq[1];
  const double c = std::cos(static_cast<double>(angle));
  const double s = std::sin(static_cast<double>(angle));
  EXPECT_NEAR(v[2], 3 * c - 4 * s, 1e-5);
  EXPECT_NEAR(v[3], 3 * s + 4 * c, 1e-5);
  rotate(rotation_at(p, inv_freq, Turn::kInverse), v);
  for (int i = 0; i < tensor::kRopeDim; ++i) {
    EXPECT_NEAR(v[i], static_cast<float>(i + 1), 2e-5F);
  }
}

TEST(Hadamard, IsOrthogonalAndInSylvesterOrder) {
  float v[128] = {};
  v[1] = 8;
  hadamard_128(v);
  const float size = tensor::round_bf16(8.0F / std::sqrt(128.0F));
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(v[i], i % 2 == 0 ? size : -size) << i;  // row 1 of H alternates in sign
  }
  float w[128] = {};
  w[64] = 8;
  hadamard_128(w);
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(w[i], i < 64 ? size : -size) << i;
  }
}

TEST(Fp4Sim, TakesTheNearestValueOfTheBlock) {
  float x[32] = {6, -0.2F, 0.3F, 2.4F, 2.6F, -5.1F};
  fp4_sim_32(x, 32);
  const float expected[7] = {6, 0, 0.5F, 2, 3, -6, 0};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(x[i], expected[i]) << i;
  }
}

TEST(ActQuant, HasOneScalePerBlockAndAShortLastBlock) {
  std::vector<float> x(130, 0.0F);
  x[0] = 448;
  x[1] = 0.001F;  // under half a step of 2^-9 at scale 1
  x[128] = 0.001F;
  std::vector<float> out(130, NAN);
  act_quant_128(x.data(), 130, out.data());
  EXPECT_EQ(out[0], 448.0F);
  EXPECT_EQ(out[1], 0x1.0p-9F * std::nearbyint(0.001F * 512));
  EXPECT_NEAR(out[128], 0.001F, 0.001F * 0x1.0p-4F);
  EXPECT_EQ(out[129], 0.0F);
}

}  // namespace
}  // namespace tandem::cpu
