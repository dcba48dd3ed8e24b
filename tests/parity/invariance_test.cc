// A row's result must not depend on its neighbours, on how a prompt is cut into calls, or on the
// number of threads: the same bits every time.
#include <gtest/gtest.h>

#include "tests/parity/cache_inputs.h"
#include "tests/parity/subject.h"

namespace tandem::parity {
namespace {

using kernels::LinearKind;
using kernels::Numerics;
using kernels::Segment;
using tensor::RowFormat;
using tensor::WeightFormat;

void expect_same_bits(const float* a, const float* b, std::int64_t n, const std::string& what) {
  ASSERT_EQ(0, std::memcmp(a, b, size(n) * sizeof(float))) << what;
}

class Invariance : public testing::TestWithParam<Numerics> {};

TEST_P(Invariance, LinearRowsAloneAndTogether) {
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kFp8, WeightFormat::kFp4}) {
    const std::int64_t n = 70;
    const std::int64_t cols = 1120;
    const std::int64_t outs = 150;
    Inputs inputs(21);
    const Weight w = inputs.weight(format, outs, cols);
    const std::vector<float> x = inputs.bf16_floats(n * cols);
    std::vector<float> whole = poisoned(n * outs);
    make_subject(GetParam(), 1)
        ->linear({n, x.data(), cols, w.view, LinearKind::kPartial, whole.data(), outs});
    for (const int n_threads : thread_counts()) {
      const auto ops = make_subject(GetParam(), n_threads);
      for (const std::int64_t chunk : {1, 2, 3, 4, 5, 64, 70}) {
        std::vector<float> cut = poisoned(n * outs);
        for (std::int64_t r = 0; r < n; r += chunk) {
          ops->linear({std::min(chunk, n - r), x.data() + r * cols, cols, w.view,
                       LinearKind::kPartial, cut.data() + r * outs, outs});
        }
        expect_same_bits(
            cut.data(), whole.data(), n * outs,
            "chunk " + std::to_string(chunk) + " threads " + std::to_string(n_threads));
      }
    }
  }
}

kernels::ExpertStack stack_of(const Weight& all, std::int64_t rows) {
  return {{all.view.format, rows, all.view.cols, all.view.data, all.view.scales},
          rows * all.view.cols / 2,
          rows * (all.view.cols / 32)};
}

TEST_P(Invariance, ExpertRowsAloneAndTogether) {
  const std::int32_t n = 37;
  const std::int32_t hidden = 256;
  const std::int64_t inter = 128;
  Inputs inputs(22);
  const Weight w1 = inputs.weight(WeightFormat::kFp4, 4 * inter, hidden);
  const Weight w3 = inputs.weight(WeightFormat::kFp4, 4 * inter, hidden);
  const Weight w2 = inputs.weight(WeightFormat::kFp4, 4 * hidden, inter);
  const Weight s1 = inputs.weight(WeightFormat::kFp8, inter, hidden);
  const Weight s3 = inputs.weight(WeightFormat::kFp8, inter, hidden);
  const Weight s2 = inputs.weight(WeightFormat::kFp8, hidden, inter);
  const std::vector<float> x = inputs.bf16_floats(n * hidden);
  std::vector<std::int32_t> experts;
  for (std::int32_t t = 0; t < n; ++t) {
    experts.push_back(inputs.integer(0, 1) * 3);  // 0 or 3, then 1 or 2: both orders of id
    experts.push_back(inputs.integer(1, 2));
  }
  const std::vector<float> weights = inputs.floats(n * 2);
  const auto run = [&](kernels::Kernels& ops, std::int32_t first, std::int32_t count, float* out) {
    kernels::ExpertsArgs args;
    args.n_tokens = count;
    args.hidden = hidden;
    args.top_k = 2;
    args.swiglu_limit = 10;
    args.x = x.data() + first * hidden;
    args.experts = experts.data() + first * 2;
    args.weights = weights.data() + first * 2;
    args.w1 = stack_of(w1, inter);
    args.w3 = stack_of(w3, inter);
    args.w2 = stack_of(w2, hidden);
    args.shared_w1 = s1.view;
    args.shared_w3 = s3.view;
    args.shared_w2 = s2.view;
    args.out = out + first * hidden;
    ops.experts(args);
  };
  std::vector<float> whole = poisoned(n * hidden);
  run(*make_subject(GetParam(), 1), 0, n, whole.data());
  for (const int n_threads : thread_counts()) {
    const auto ops = make_subject(GetParam(), n_threads);
    for (const std::int32_t chunk : {1, 5, n}) {
      std::vector<float> cut = poisoned(n * hidden);
      for (std::int32_t t = 0; t < n; t += chunk) {
        run(*ops, t, std::min(chunk, n - t), cut.data());
      }
      expect_same_bits(cut.data(), whole.data(), n * hidden, "chunk " + std::to_string(chunk));
    }
  }
}

// One layer's attention as the model runs it, for sequences that share a step or not: compress,
// index, attend, append. All inputs are fixed per (sequence, position).
class AttentionFlow {
 public:
  static constexpr int kHeads = 3;
  static constexpr int kIndexHeads = 2;
  static constexpr int kTopK = 9;
  static constexpr int kMaxTokens = 300;
  static constexpr int kSlots = 2;

  AttentionFlow(Numerics numerics, int n_threads, int ratio)
      : native_(numerics == Numerics::kNative),
        ops_(make_subject(numerics, n_threads)),
        ratio_(ratio),
        width_(ratio == 4 ? 1024 : 512),
        random_(31),
        window_(random_, window_format(), 512, kSlots, 140),
        state_(random_, RowFormat::kF32, 2 * width_, kSlots, 140),
        index_state_(random_, RowFormat::kF32, 512, kSlots, 140),
        rows_(random_, window_format(), 512, kSlots, kMaxTokens / ratio + 1),
        keys_(random_, native_ ? RowFormat::kBf16 : RowFormat::kF32, 128, kSlots,
              kMaxTokens / 4 + 1) {
    const std::int64_t n = kSlots * kMaxTokens;
    q_ = random_.bf16_floats(n * kHeads * 512);
    kv_ = rows_on_cache_grid(n);
    comp_kv_ = random_.floats(n * width_);
    comp_score_ = random_.floats(n * width_);
    index_kv_ = random_.floats(n * 256);
    index_score_ = random_.floats(n * 256);
    iq_ = random_.bf16_floats(n * kIndexHeads * 128);
    iw_ = random_.bf16_floats(n * kIndexHeads);
    ape_ = random_.floats(ratio * width_);
    norm_ = random_.bf16(512, 1, 0.1F);
    inv_freq_ = random_.floats(32, 0.2F);
    sink_ = random_.floats(kHeads);
    out_ = poisoned(n * kHeads * 512);
  }

  // One step over runs of (slot, first, n). Inputs of the runs are gathered side by side.
  void step(const std::vector<Segment>& wanted) {
    std::vector<Segment> segments = wanted;
    std::vector<std::int64_t> at;  // where each row's inputs lie
    for (Segment& segment : segments) {
      segment.first_row = static_cast<std::int32_t>(at.size());
      for (int i = 0; i < segment.n_rows; ++i) {
        at.push_back(segment.slot * kMaxTokens + segment.first_position + i);
      }
    }
    const auto n = static_cast<std::int32_t>(at.size());
    rows_now_ = {n, static_cast<std::int32_t>(segments.size()), nullptr, segments.data()};
    const std::vector<float> q = gather(q_, at, kHeads * 512);
    const std::vector<float> kv = gather(kv_, at, 512);
    compress(gather(comp_kv_, at, width_), gather(comp_score_, at, width_));
    std::vector<std::int32_t> selected;
    std::vector<std::int32_t> n_selected;
    if (ratio_ == 4) {
      compress_index(gather(index_kv_, at, 256), gather(index_score_, at, 256));
      selected.assign(size(n * kTopK), -1);
      n_selected.assign(size(n), -1);
      select(gather(iq_, at, kIndexHeads * 128), gather(iw_, at, kIndexHeads), selected,
             n_selected);
    }
    std::vector<float> out(size(n * kHeads * 512), kPoison);
    attend(q, kv, selected, n_selected, out);
    ops_->window_append({rows_now_, kv.data(), window_.view(), window_format()});
    for (std::size_t r = 0; r < at.size(); ++r) {
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(r * kHeads * 512), kHeads * 512,
                  out_.begin() + at[r] * kHeads * 512);
    }
  }

  const std::vector<float>& out() const { return out_; }

 private:
  RowFormat window_format() const { return native_ ? RowFormat::kFp8 : RowFormat::kF32; }

  // kv rows as the kv op leaves them: what the ring can hold exactly.
  std::vector<float> rows_on_cache_grid(std::int64_t n) {
    std::vector<float> values = random_.bf16_floats(n * 512);
    for (std::int64_t r = 0; r < n; ++r) {
      std::uint8_t stored[2048];
      store_row(window_format(), 512, values.data() + r * 512, stored);
      load_row(window_format(), 512, stored, values.data() + r * 512);
    }
    return values;
  }

  static std::vector<float> gather(const std::vector<float>& all,
                                   const std::vector<std::int64_t>& at, std::int64_t width) {
    std::vector<float> picked;
    for (const std::int64_t row : at) {
      picked.insert(picked.end(), all.begin() + row * width, all.begin() + (row + 1) * width);
    }
    return picked;
  }

  kernels::CompressArgs compress_args(const std::vector<float>& kv,
                                      const std::vector<float>& score) const {
    kernels::CompressArgs args;
    args.rows = rows_now_;
    args.eps = 1e-6F;
    args.kv = kv.data();
    args.score = score.data();
    args.ape = ape_.data();
    args.norm = norm_.data();
    args.inv_freq = inv_freq_.data();
    return args;
  }

  void compress(const std::vector<float>& kv, const std::vector<float>& score) {
    kernels::CompressArgs args = compress_args(kv, score);
    args.ratio = ratio_;
    args.width = width_;
    args.state = state_.view();
    args.out = rows_.view();
    ops_->compress(args);
  }

  void compress_index(const std::vector<float>& kv, const std::vector<float>& score) {
    kernels::CompressArgs args = compress_args(kv, score);
    args.kind = kernels::CompressedKind::kIndex;
    args.ratio = 4;
    args.width = 256;
    args.state = index_state_.view();
    args.out = keys_.view();
    ops_->compress(args);
  }

  void select(std::vector<float> iq, const std::vector<float>& iw,
              std::vector<std::int32_t>& selected, std::vector<std::int32_t>& n_selected) {
    ops_->index_query({rows_now_, kIndexHeads, inv_freq_.data(), iq.data()});
    kernels::IndexSelectArgs args;
    args.rows = rows_now_;
    args.n_heads = kIndexHeads;
    args.top_k = kTopK;
    args.iq = iq.data();
    args.iw = iw.data();
    args.keys = keys_.view();
    args.selected = selected.data();
    args.n_selected = n_selected.data();
    ops_->index_select(args);
  }

  void attend(const std::vector<float>& q, const std::vector<float>& kv,
              const std::vector<std::int32_t>& selected,
              const std::vector<std::int32_t>& n_selected, std::vector<float>& out) {
    kernels::AttentionArgs args;
    args.rows = rows_now_;
    args.n_heads = kHeads;
    args.q = q.data();
    args.kv = kv.data();
    args.window = window_.view();
    args.window_format = window_format();
    args.ratio = ratio_;
    args.compressed = rows_.view();
    args.selected = selected.empty() ? nullptr : selected.data();
    args.n_selected = n_selected.data();
    args.top_k = kTopK;
    args.sink = sink_.data();
    args.inv_freq = inv_freq_.data();
    args.out = out.data();
    ops_->attention(args);
  }

  bool native_;
  std::unique_ptr<kernels::Kernels> ops_;
  int ratio_;
  int width_;
  Inputs random_;
  RandomRing window_;
  RandomRing state_;
  RandomRing index_state_;
  RandomPages rows_;
  RandomPages keys_;
  std::vector<float> q_, kv_, comp_kv_, comp_score_, index_kv_, index_score_, iq_, iw_;
  std::vector<float> ape_, inv_freq_, sink_, out_;
  std::vector<std::uint16_t> norm_;
  kernels::StepRows rows_now_;
};

TEST_P(Invariance, AttentionLayerUnderAnyScheduling) {
  for (const int ratio : {4, 128}) {
    AttentionFlow whole(GetParam(), 1, ratio);
    whole.step({{0, 0, AttentionFlow::kMaxTokens, 0}});
    whole.step({{1, 0, 150, 0}});

    // Both sequences side by side, cut at odd places, on two threads.
    AttentionFlow cut(GetParam(), 2, ratio);
    Position first = 0;
    Position second = 0;
    for (int i = 0; first < AttentionFlow::kMaxTokens; ++i) {
      const auto n = static_cast<std::int32_t>(
          std::min<Position>(1 + (i * 5) % 23, AttentionFlow::kMaxTokens - first));
      const auto m = static_cast<std::int32_t>(std::min<Position>(1 + i % 7, 150 - second));
      std::vector<Segment> segments = {{0, 0, n, first}};
      if (m > 0) {
        segments.insert(i % 2 == 0 ? segments.begin() : segments.end(), Segment{1, 0, m, second});
      }
      cut.step(segments);
      first += n;
      second += m;
    }
    while (second < 150) {
      cut.step({{1, 0, 1, second}});
      ++second;
    }
    expect_same_bits(whole.out().data(), cut.out().data(),
                     static_cast<std::int64_t>(whole.out().size()),
                     "ratio " + std::to_string(ratio));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Invariance, testing::Values(Numerics::kReference, Numerics::kNative),
                         [](const auto& test) {
                           return test.param == Numerics::kNative ? "native" : "reference";
                         });

}  // namespace
}  // namespace tandem::parity
