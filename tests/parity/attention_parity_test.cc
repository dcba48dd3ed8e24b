// Ops on caches against the oracle: attention, index selection, compressor, window.
#include <gtest/gtest.h>

#include <algorithm>

#include "compute/cpu/cpu_kernels.h"
#include "tests/parity/cache_inputs.h"
#include "tests/parity/subject.h"
#include "tests/parity/tolerance.h"

namespace tandem::parity {
namespace {

using kernels::Numerics;
using kernels::Segment;
using tensor::RowFormat;

// Two sequences: one late enough for a full ring, one at its start.
const std::vector<Segment> kSegments = {{1, 0, 3, 301}, {0, 3, 9, 0}};
constexpr int kTokens = 12;
constexpr int kSlots = 2;

struct AttentionCase {
  Numerics numerics;
  RowFormat format;
  int ratio;
  bool select;
  bool block_draft;
  float sink;
};

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, MatchesTheOracle) {
  const AttentionCase param = GetParam();
  const int n_heads = 6;
  const int top_k = 20;
  Inputs inputs(static_cast<std::uint32_t>(param.ratio + 17));
  RandomRing window(inputs, param.format, 512, kSlots, 136);
  RandomPages compressed(inputs, param.format, 512, kSlots, 80);
  const std::vector<float> q = inputs.bf16_floats(kTokens * n_heads * 512);
  const std::vector<float> kv = inputs.bf16_floats(kTokens * 512);
  const std::vector<float> inv_freq = inputs.floats(32, 0.3F);
  std::vector<float> sink = inputs.floats(n_heads);
  sink[1] = param.sink;
  std::vector<std::int32_t> selected(kTokens * top_k, -1);
  std::vector<std::int32_t> n_selected;
  for (int t = 0; t < kTokens; ++t) {
    n_selected.push_back(t < 3 ? top_k - t : t / 4);
    for (int i = 0; i < n_selected.back(); ++i) {
      selected[size(t * top_k + i)] = t < 3 ? 3 * i + t : i;
    }
  }
  kernels::AttentionArgs args;
  args.rows = {kTokens, 2, nullptr, kSegments.data()};
  args.n_heads = n_heads;
  args.q = q.data();
  args.kv = kv.data();
  args.window = window.view();
  args.window_format = param.format;
  args.ratio = param.ratio;
  args.compressed = compressed.view();
  args.selected = param.select ? selected.data() : nullptr;
  args.n_selected = n_selected.data();
  args.top_k = top_k;
  args.sink = sink.data();
  args.inv_freq = inv_freq.data();
  args.block_draft = param.block_draft;
  std::vector<float> expected = poisoned(kTokens * n_heads * 512);
  args.out = expected.data();
  cpu::make_reference_kernels(param.numerics)->attention(args);
  std::vector<float> actual = poisoned(kTokens * n_heads * 512);
  args.out = actual.data();
  make_subject(param.numerics)->attention(args);
  expect_rows_near(actual, expected, 512, row_bound(param.numerics), "attention");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Attention,
    testing::Values(AttentionCase{Numerics::kReference, RowFormat::kF32, 0, false, false, 0},
                    AttentionCase{Numerics::kReference, RowFormat::kF32, 4, true, false, 300},
                    AttentionCase{Numerics::kReference, RowFormat::kF32, 128, false, false, -300},
                    AttentionCase{Numerics::kNative, RowFormat::kFp8, 4, true, false, 0},
                    AttentionCase{Numerics::kNative, RowFormat::kBf16, 128, false, false, 0},
                    AttentionCase{Numerics::kNative, RowFormat::kFp8, 0, false, true, 0},
                    AttentionCase{Numerics::kReference, RowFormat::kF32, 0, false, true, 0}));

// A sink above every logit by more than a float's range must leave no NaN. model.md 2.9.
TEST(AttentionSink, MayDwarfEveryLogit) {
  const std::vector<float> q(512, 1.0F);
  const std::vector<float> kv(512, 0.5F);
  const std::vector<float> inv_freq(32, 0.1F);
  const std::vector<float> sink = {1e4F};
  const std::vector<Segment> segment = {{0, 0, 1, 0}};
  kernels::AttentionArgs args;
  args.rows = {1, 1, nullptr, segment.data()};
  args.n_heads = 1;
  args.q = q.data();
  args.kv = kv.data();
  args.sink = sink.data();
  args.inv_freq = inv_freq.data();
  std::vector<float> out = poisoned(512);
  args.out = out.data();
  make_subject(Numerics::kReference)->attention(args);
  for (std::size_t i = 0; i < 512; ++i) {
    ASSERT_EQ(out[i], 0.0F);
  }
}

struct Selection {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> counts;
};

kernels::IndexSelectArgs index_args(int n_heads, int top_k) {
  kernels::IndexSelectArgs args;
  args.rows = {kTokens, 2, nullptr, kSegments.data()};
  args.n_heads = n_heads;
  args.ratio = 4;
  args.top_k = top_k;
  return args;
}

Selection run_select(kernels::Kernels& ops, kernels::IndexSelectArgs args) {
  Selection result{std::vector<std::int32_t>(size(kTokens * args.top_k), -1),
                   std::vector<std::int32_t>(kTokens, -1)};
  args.selected = result.rows.data();
  args.n_selected = result.counts.data();
  ops.index_select(args);
  return result;
}

// Score of one key and the sum of the sizes of everything added for it.
std::pair<double, double> score_of(const kernels::IndexSelectArgs& args, int t, int slot, int c) {
  std::vector<float> key(128);
  load_row(args.keys.format, 128, args.keys.row(slot, c), key.data());
  const double factor = 1.0 / std::sqrt(128.0 * args.n_heads);
  double score = 0;
  double sizes = 0;
  for (int h = 0; h < args.n_heads; ++h) {
    double dot = 0;
    double size_of_dot = 0;
    for (int i = 0; i < 128; ++i) {
      const double product = static_cast<double>(args.iq[(t * args.n_heads + h) * 128 + i]) *
                             static_cast<double>(key[size(i)]);
      dot += product;
      size_of_dot += std::fabs(product);
    }
    const double weight = static_cast<double>(args.iw[t * args.n_heads + h]) * factor;
    score += weight * std::max(0.0, dot);
    sizes += std::fabs(weight) * size_of_dot;
  }
  return {score, sizes};
}

TEST(IndexSelect, TakesTheBestRowsUpToTheSummationBound) {
  const int n_heads = 5;
  for (const int top_k : {7, 64, 100}) {
    for (const RowFormat format : {RowFormat::kF32, RowFormat::kBf16}) {
      Inputs inputs(static_cast<std::uint32_t>(top_k));
      RandomPages keys(inputs, format, 128, kSlots, 80);
      const std::vector<float> iq = inputs.bf16_floats(kTokens * n_heads * 128);
      const std::vector<float> iw = inputs.bf16_floats(kTokens * n_heads);  // negative ones too
      kernels::IndexSelectArgs args = index_args(n_heads, top_k);
      args.iq = iq.data();
      args.iw = iw.data();
      args.keys = keys.view();
      const Selection actual = run_select(*make_subject(Numerics::kReference), args);
      for (int t = 0; t < kTokens; ++t) {
        const Segment& segment = kSegments[t < 3 ? 0U : 1U];
        const int visible =
            static_cast<int>((segment.first_position + (t - segment.first_row) + 1) / 4);
        const int count = std::min(visible, top_k);
        ASSERT_EQ(actual.counts[size(t)], count);
        std::vector<double> scores;
        double tolerance = 0;
        for (int c = 0; c < visible; ++c) {
          const auto score = score_of(args, t, segment.slot, c);
          scores.push_back(score.first);
          tolerance = std::max(tolerance, dot_bound(128 + 4 * n_heads, score.second));
        }
        std::vector<double> sorted = scores;
        std::sort(sorted.rbegin(), sorted.rend());
        for (int i = 0; i < count; ++i) {
          const std::int32_t row = actual.rows[size(t * top_k + i)];
          ASSERT_GE(row, i > 0 ? actual.rows[size(t * top_k + i - 1)] + 1 : 0);
          ASSERT_LT(row, visible);
          ASSERT_GE(scores[size(row)], sorted[size(count - 1)] - 2 * tolerance);
        }
      }
    }
  }
}

TEST(IndexSelect, TiesGoToTheLowestRowAndNanNeverWins) {
  const std::vector<float> iq(kTokens * 128, 1.0F);
  const std::vector<float> iw(kTokens, 1.0F);
  Inputs inputs(3);
  RandomPages keys(inputs, RowFormat::kF32, 128, kSlots, 80);
  kernels::IndexSelectArgs args = index_args(1, 6);
  args.iq = iq.data();
  args.iw = iw.data();
  args.keys = keys.view();
  for (int c = 0; c < 76; ++c) {
    // Rows 70.. are best, all others tie; row 2 is broken.
    std::vector<float> row(128, c >= 70 && c < 73 ? 2.0F : 1.0F);
    row[5] = c == 2 ? kPoison : row[5];
    store_row(RowFormat::kF32, 128, row.data(), args.keys.row(1, c));
  }
  const std::vector<std::int32_t> expected = {0, 1, 3, 70, 71, 72};
  const Selection fast = run_select(*make_subject(Numerics::kReference), args);
  EXPECT_EQ(std::vector<std::int32_t>(fast.rows.begin(), fast.rows.begin() + 6), expected);
}

struct CompressCase {
  Numerics numerics;
  int ratio;
  int d;
  RowFormat format;
};

class Compress : public testing::TestWithParam<CompressCase> {};

TEST_P(Compress, MatchesTheOracle) {
  const CompressCase param = GetParam();
  const int width = param.ratio == 4 ? 2 * param.d : param.d;
  // The second segment completes rows from its own tokens and from the ring.
  const std::vector<Segment> segments = {{1, 0, 7, 125}, {0, 7, 140, 0}};
  const int n_tokens = 147;
  Inputs inputs(static_cast<std::uint32_t>(param.ratio + param.d));
  const int ring_rows = param.ratio == 4 ? 13 : 140;
  const std::vector<float> kv = inputs.floats(n_tokens * width);
  const std::vector<float> score = inputs.floats(n_tokens * width, 2);
  const std::vector<float> ape = inputs.floats(param.ratio * width);
  const auto norm = inputs.bf16(param.d, 1, 0.2F);
  const std::vector<float> inv_freq = inputs.floats(32, 0.3F);
  kernels::CompressArgs args;
  args.rows = {n_tokens, 2, nullptr, segments.data()};
  args.kind = param.d == 512 ? kernels::CompressedKind::kMain : kernels::CompressedKind::kIndex;
  args.ratio = param.ratio;
  args.width = width;
  args.eps = 1e-6F;
  args.kv = kv.data();
  args.score = score.data();
  args.ape = ape.data();
  args.norm = norm.data();
  args.inv_freq = inv_freq.data();
  std::vector<float> rows[2];
  std::vector<std::uint8_t> rings[2];
  for (int i = 0; i < 2; ++i) {
    Inputs same(99);  // both start from the same ring
    RandomRing ring(same, RowFormat::kF32, 2 * width, kSlots, ring_rows);
    RandomPages pages(same, param.format, param.d, kSlots, 40);
    pages.clear();
    args.state = ring.view();
    args.out = pages.view();
    const auto ops =
        i == 0 ? cpu::make_reference_kernels(param.numerics) : make_subject(param.numerics);
    ops->compress(args);
    for (const Segment& segment : segments) {
      const Position end = (segment.first_position + segment.n_rows) / param.ratio;
      for (Position c = segment.first_position / param.ratio; c < end; ++c) {
        std::vector<float> row(size(param.d));
        load_row(param.format, param.d, args.out.row(segment.slot, c), row.data());
        rows[i].insert(rows[i].end(), row.begin(), row.end());
      }
    }
    rows[i].resize(rows[i].size() + kCanaries, kPoison);
    rings[i] = ring.bytes();
  }
  // An index key is fp4: one flip is a quarter of an element (2^-2), and a pool value meets a
  // boundary about as rarely as in tolerance.h 4, so the bound is that of bf16 rows times 2^4.
  const double bound = param.numerics == Numerics::kNative && param.d == 128
                           ? 16 * kNativeRow
                           : row_bound(param.numerics);
  expect_rows_near(rows[1], rows[0], param.d, bound, "compressed rows");
  EXPECT_EQ(rings[0], rings[1]);  // one float addition: the same bits
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Compress,
    testing::Values(CompressCase{Numerics::kReference, 4, 512, RowFormat::kF32},
                    CompressCase{Numerics::kReference, 128, 512, RowFormat::kF32},
                    CompressCase{Numerics::kReference, 4, 128, RowFormat::kF32},
                    CompressCase{Numerics::kNative, 4, 512, RowFormat::kFp8},
                    CompressCase{Numerics::kNative, 128, 512, RowFormat::kBf16},
                    CompressCase{Numerics::kNative, 4, 128, RowFormat::kBf16}));

TEST(WindowAppend, WritesTheSameBytes) {
  for (const RowFormat format : {RowFormat::kF32, RowFormat::kBf16, RowFormat::kFp8}) {
    Inputs inputs(12);
    const std::vector<float> kv = inputs.floats(kTokens * 512);
    std::vector<std::uint8_t> rings[2];
    for (int i = 0; i < 2; ++i) {
      Inputs same(13);
      RandomRing ring(same, format, 512, kSlots, 7);  // shorter than the second segment
      const auto ops =
          i == 0 ? cpu::make_reference_kernels(Numerics::kNative) : make_subject(Numerics::kNative);
      ops->window_append({{kTokens, 2, nullptr, kSegments.data()}, kv.data(), ring.view(), format});
      rings[i] = ring.bytes();
    }
    EXPECT_EQ(rings[0], rings[1]);
  }
}

}  // namespace
}  // namespace tandem::parity
