// Ops that read and write caches: what one whole prompt gives, any chunking must give again, bit
// for bit. SOURCE: model.md 2.5, 2.6, 2.13, traps T17-T22.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "compute/cpu/cpu_kernels.h"

namespace tandem::cpu {
namespace {

using kernels::Numerics;
using kernels::Segment;

constexpr int kSlots = 3;
constexpr int kSlot = 2;

std::vector<float> random_values(std::size_t n, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(n);
  for (float& value : values) {
    value = normal(engine);
  }
  return values;
}

// One compressor with its ring and pages, fed with runs of one sequence.
class CompressorFixture {
 public:
  CompressorFixture(Numerics numerics, int ratio, int d, int n_tokens)
      : ops_(make_reference_kernels(numerics)),
        ratio_(ratio),
        d_(d),
        width_(ratio == 4 ? 2 * d : d),
        ring_rows_(ratio == 4 ? 11 : 131),
        kv_(random_values(static_cast<std::size_t>(n_tokens * width_), 1)),
        score_(random_values(kv_.size(), 2)),
        ape_(random_values(static_cast<std::size_t>(ratio * width_), 3)),
        norm_(static_cast<std::size_t>(d), 0x3F80),
        inv_freq_(32, 0.125F),
        ring_(static_cast<std::size_t>(kSlots * ring_rows_ * 2 * width_), NAN),
        max_pages_(n_tokens / ratio / kRowsPerPage + 1),
        pages_(static_cast<std::size_t>(max_pages_ * kRowsPerPage * d), NAN) {
    for (int page = 0; page < kSlots * max_pages_; ++page) {
      page_table_.push_back(max_pages_ - 1 - page % max_pages_);  // pages in reverse order
    }
  }

  void run(int first, int n) {
    const Segment segment{kSlot, 0, n, first};
    kernels::CompressArgs args;
    args.rows = {n, 1, nullptr, &segment};
    args.kind = d_ == 512 ? kernels::CompressedKind::kMain : kernels::CompressedKind::kIndex;
    args.ratio = ratio_;
    args.width = width_;
    args.eps = 1e-6F;
    args.kv = kv_.data() + first * width_;
    args.score = score_.data() + first * width_;
    args.ape = ape_.data();
    args.norm = norm_.data();
    args.inv_freq = inv_freq_.data();
    const std::int64_t row_bytes = std::int64_t{8} * width_;
    args.state = {ring_.data(), row_bytes * ring_rows_, row_bytes, ring_rows_};
    args.out.data = pages_.data();
    args.out.page_tables = page_table_.data();
    args.out.max_pages = max_pages_;
    args.out.rows_per_page = kRowsPerPage;
    args.out.row_bytes = std::int64_t{4} * d_;
    args.out.page_stride_bytes = args.out.row_bytes * kRowsPerPage;
    ops_->compress(args);
  }

  std::vector<float> row(int c) const {
    const int page = page_table_[static_cast<std::size_t>(c / kRowsPerPage)];
    const float* begin = pages_.data() + (page * kRowsPerPage + c % kRowsPerPage) * d_;
    return std::vector<float>(begin, begin + d_);
  }

  int d() const { return d_; }

 private:
  static constexpr int kRowsPerPage = 2;
  std::unique_ptr<kernels::Kernels> ops_;
  int ratio_;
  int d_;
  int width_;
  int ring_rows_;
  std::vector<float> kv_;
  std::vector<float> score_;
  std::vector<float> ape_;
  std::vector<std::uint16_t> norm_;
  std::vector<float> inv_freq_;
  std::vector<float> ring_;
  int max_pages_;
  std::vector<float> pages_;
  std::vector<PageId> page_table_;
};

struct Shape {
  Numerics numerics;
  int ratio;
  int d;
  int n_tokens;
};

class AnyChunking : public testing::TestWithParam<Shape> {};

TEST_P(AnyChunking, GivesTheSameCompressedRows) {
  const Shape shape = GetParam();
  CompressorFixture whole(shape.numerics, shape.ratio, shape.d, shape.n_tokens);
  whole.run(0, shape.n_tokens);
  for (const int chunk : {1, 3, 5, 64}) {
    CompressorFixture cut(shape.numerics, shape.ratio, shape.d, shape.n_tokens);
    for (int first = 0; first < shape.n_tokens; first += chunk) {
      cut.run(first, std::min(chunk, shape.n_tokens - first));
    }
    for (int c = 0; c < shape.n_tokens / shape.ratio; ++c) {
      const std::vector<float> expected = whole.row(c);
      ASSERT_FALSE(std::isnan(expected[0])) << "row " << c << " was not emitted";
      ASSERT_EQ(cut.row(c), expected) << "chunk " << chunk << " row " << c;
    }
    const int next = shape.n_tokens / shape.ratio;
    EXPECT_TRUE(std::isnan(cut.row(next)[0])) << "a row was emitted before its window was full";
  }
}

TEST_P(AnyChunking, SurvivesARollbackOfThreeTokens) {
  const Shape shape = GetParam();
  CompressorFixture whole(shape.numerics, shape.ratio, shape.d, shape.n_tokens);
  whole.run(0, shape.n_tokens);
  CompressorFixture redone(shape.numerics, shape.ratio, shape.d, shape.n_tokens);
  for (int first = 0; first < shape.n_tokens; ++first) {
    redone.run(first, std::min(4, shape.n_tokens - first));  // three of the four are taken back
  }
  for (int c = 0; c < shape.n_tokens / shape.ratio; ++c) {
    ASSERT_EQ(redone.row(c), whole.row(c)) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Compress, AnyChunking,
                         testing::Values(Shape{Numerics::kReference, 4, 512, 23},
                                         Shape{Numerics::kNative, 4, 512, 23},
                                         Shape{Numerics::kNative, 4, 128, 23},
                                         Shape{Numerics::kReference, 128, 512, 300},
                                         Shape{Numerics::kNative, 128, 512, 300}));

// Logits are equal inside each window and differ by dim between the windows, so every pool has a
// closed form: row 0 is the plain mean (nothing before it), row 1 weighs two means against
// each other.
TEST(Compress, FirstRowHasNoPreviousWindow) {
  const auto ops = make_reference_kernels(Numerics::kReference);
  constexpr int d = 512;
  const auto logit_of = [](int i) { return i % 2 == 0 ? -3.0F : 3.0F; };
  std::vector<float> kv;
  std::vector<float> score;
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < 2 * d; ++i) {
      kv.push_back(i < d ? -1.0F : static_cast<float>(t + 1));
      score.push_back(i < d ? 0.0F : logit_of(i));
    }
  }
  const std::vector<float> zero(kv.size(), 0.0F);
  const std::vector<std::uint16_t> norm(d, 0x3F80);
  const std::vector<float> inv_freq(32, 0.0F);
  std::vector<float> ring(8 * 4 * d, NAN);
  std::vector<float> out(2 * d, NAN);
  const PageId page = 0;
  const Segment segment{0, 0, 8, 0};
  kernels::CompressArgs args;
  args.rows = {8, 1, nullptr, &segment};
  args.ratio = 4;
  args.width = 2 * d;
  args.eps = 0;
  args.kv = kv.data();
  args.score = score.data();
  args.ape = zero.data();
  args.norm = norm.data();
  args.inv_freq = inv_freq.data();
  args.state = {ring.data(), 8 * 16 * d, 16 * d, 8};
  args.out = {out.data(), &page, 1, 2, 8 * d, 4 * d, tensor::RowFormat::kF32};
  ops->compress(args);
  double pooled[2];
  for (int i = 0; i < 2; ++i) {
    const double weight = std::exp(static_cast<double>(logit_of(i)));
    pooled[i] = (-1.0 + weight * 6.5) / (1.0 + weight);
  }
  const double rms = std::sqrt((pooled[0] * pooled[0] + pooled[1] * pooled[1]) / 2);
  for (std::size_t i = 0; i < d; ++i) {
    ASSERT_NEAR(out[i], 1.0F, 1e-6F) << i;
    ASSERT_NEAR(out[d + i], pooled[i % 2] / rms, 1e-5) << i;
  }
}

TEST(WindowAppend, KeepsTheLastRowsOfALongSegment) {
  const auto ops = make_reference_kernels(Numerics::kReference);
  const int ring_rows = 5;
  const std::vector<float> kv = random_values(12 * 512, 9);
  std::vector<float> ring(ring_rows * 512, NAN);
  const Segment segment{0, 0, 12, 3};
  kernels::WindowAppendArgs args;
  args.rows = {12, 1, nullptr, &segment};
  args.kv = kv.data();
  args.window = {ring.data(), ring_rows * 2048, 2048, ring_rows};
  ops->window_append(args);
  for (int p = 10; p < 15; ++p) {
    for (int d = 0; d < 512; ++d) {
      ASSERT_EQ(ring[static_cast<std::size_t>((p % ring_rows) * 512 + d)],
                kv[static_cast<std::size_t>((p - 3) * 512 + d)]);
    }
  }
}

}  // namespace
}  // namespace tandem::cpu
