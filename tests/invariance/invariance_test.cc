// What must not depend on how the work is cut: chunks, batches, rollback, slots, ranks. Bits, not
// tolerances, except between rank counts, where sums are grouped differently.
#include <gtest/gtest.h>

#include "foundation/base/random.h"
#include "tests/support/model_rig.h"

namespace tandem::v4 {
namespace {

using testing::greedy;
using testing::ModelRig;
using testing::relative_l2;

constexpr const char* kNano = TANDEM_SOURCE_DIR "/models/nano";
constexpr const char* kNanoDspark = TANDEM_SOURCE_DIR "/models/nano-dspark";
constexpr double kRankTolerance = 1e-4;  // relative L2 of float32 sums in another order

struct Mode {
  const char* name;
  kernels::Numerics numerics;
  tensor::RowFormat kv_format;
};

testing::RigOptions rig_options(const Mode& mode, const char* model = kNano, int n_ranks = 1) {
  testing::RigOptions options;
  options.model = model;
  options.n_ranks = n_ranks;
  options.numerics = mode.numerics;
  options.kv_format = mode.kv_format;
  options.limits.max_step_tokens = 700;
  options.limits.max_logit_rows = 16;
  options.limits.n_slots = 4;
  options.limits.max_context_tokens = 1024;
  options.limits.n_pages = 4 * 8;
  options.limits.draft_slack = 8;
  return options;
}

std::vector<TokenId> make_prompt(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<TokenId> tokens(n);
  for (TokenId& token : tokens) {
    token = static_cast<TokenId>(random.below(4096));
  }
  return tokens;
}

class Invariance : public ::testing::TestWithParam<Mode> {
 protected:
  // Logits after the prompt, read in steps of these sizes (the last one takes the rest).
  static std::vector<float> in_chunks(ModelRig& rig, std::int32_t slot,
                                      const std::vector<TokenId>& prompt,
                                      const std::vector<std::size_t>& sizes) {
    std::size_t first = 0;
    std::vector<float> logits;
    for (std::size_t i = 0; first < prompt.size(); ++i) {
      const std::size_t rest = prompt.size() - first;
      const std::size_t n = i < sizes.size() ? std::min(sizes[i], rest) : rest;
      logits = rig.run(slot, prompt, first, n);
      first += n;
    }
    return logits;
  }
};

TEST_P(Invariance, AnyCutOfThePromptGivesTheSameLogits) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<TokenId> prompt = make_prompt(1, 397);
  const std::vector<float> whole = in_chunks(rig, 0, prompt, {});
  for (const std::size_t cut :
       {1U, 3U, 4U, 5U, 127U, 128U, 129U, 130U, 255U, 256U, 257U, 395U, 396U}) {
    EXPECT_EQ(in_chunks(rig, 1, prompt, {cut}), whole) << "cut at " << cut;
  }
  Random random(2);
  for (int i = 0; i < 4; ++i) {
    std::vector<std::size_t> sizes;
    for (int k = 0; k < 20; ++k) {
      sizes.push_back(1 + static_cast<std::size_t>(random.below(60)));
    }
    EXPECT_EQ(in_chunks(rig, 2, prompt, sizes), whole) << "random cuts " << i;
  }
}

TEST_P(Invariance, DecodeIsPrefill) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<TokenId> prompt = make_prompt(3, 262);
  const std::vector<float> whole = in_chunks(rig, 0, prompt, {});
  std::vector<std::size_t> sizes(1, 120);
  sizes.resize(prompt.size(), 1);
  EXPECT_EQ(in_chunks(rig, 1, prompt, sizes), whole);
}

TEST_P(Invariance, RowsOfABatchAreAsAlone) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<std::size_t> lengths = {5, 131, 256};
  std::vector<std::vector<float>> alone;
  StepInput batch;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<TokenId> prompt = make_prompt(10 + i, lengths[i]);
    alone.push_back(in_chunks(rig, 3, prompt, {}));
    batch.segments.push_back({static_cast<std::int32_t>(i),
                              static_cast<std::int32_t>(batch.tokens.size()),
                              static_cast<std::int32_t>(lengths[i]), 0});
    batch.tokens.insert(batch.tokens.end(), prompt.begin(), prompt.end());
    batch.logit_rows.push_back(static_cast<std::int32_t>(batch.tokens.size()) - 1);
  }
  const std::vector<float> together = rig.forward(batch);
  const std::size_t vocab = together.size() / lengths.size();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(std::vector<float>(together.begin() + static_cast<std::ptrdiff_t>(i * vocab),
                                 together.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocab)),
              alone[i])
        << "sequence " << i;
  }
}

// A rejected draft: up to draft_slack rows are replaced at every place of the rings.
TEST_P(Invariance, RollbackAndRedoGivesTheSameBits) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<TokenId> prompt = make_prompt(4, 270);
  std::vector<std::size_t> ones(prompt.size(), 1);
  const std::vector<float> expected = in_chunks(rig, 0, prompt, ones);
  Random random(5);
  std::size_t at = 0;
  std::vector<float> logits;
  while (at < prompt.size()) {
    std::vector<TokenId> wrong(prompt.begin(),
                               prompt.begin() + static_cast<std::ptrdiff_t>(at + 1));
    for (int i = 0; i < 7; ++i) {
      wrong.push_back(static_cast<TokenId>(random.below(4096)));
    }
    rig.run(1, wrong, at, wrong.size() - at);  // one right token, seven that are rejected
    const std::size_t n = std::min<std::size_t>(1 + random.below(3), prompt.size() - at);
    logits = rig.run(1, prompt, at, n);
    at += n;
  }
  EXPECT_EQ(logits, expected);
}

TEST_P(Invariance, ASlotThatWasUsedIsAsNew) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<TokenId> prompt = make_prompt(6, 140);
  const std::vector<float> fresh = in_chunks(rig, 0, prompt, {});
  in_chunks(rig, 1, make_prompt(7, 600), {});
  EXPECT_EQ(in_chunks(rig, 1, prompt, {}), fresh);
}

// Distance of the best logit from the second.
double margin(std::vector<float> logits) {
  std::nth_element(logits.begin(), logits.begin() + 1, logits.end(), std::greater<>());
  return static_cast<double>(logits[0]) - logits[1];
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Reference sums differ in their order only.
TEST(Ranks, TwoSayTheSameInReferenceNumerics) {
  const Mode reference{"reference", kernels::Numerics::kReference, tensor::RowFormat::kF32};
  ModelRig one(rig_options(reference));
  ModelRig two(rig_options(reference, kNano, 2));
  std::vector<TokenId> text = make_prompt(8, 300);
  std::vector<float> from_one = one.run(0, text, 0, text.size());
  std::vector<float> from_two = two.run(0, text, 0, text.size());
  for (int i = 0; i < 8; ++i) {
    EXPECT_LE(relative_l2(from_two, from_one), kRankTolerance) << "step " << i;
    ASSERT_EQ(greedy(from_two), greedy(from_one)) << "step " << i;
    text.push_back(greedy(from_one));
    from_one = one.run(0, text, text.size() - 1, 1);
    from_two = two.run(0, text, text.size() - 1, 1);
  }
}

// Native sums are then rounded to bf16 and FP8, where the last bit of a sum moves a value by a step
// of the coarser grid, and now and then an expert. Two ranks may differ as two roundings of the
// same model do: less than native numerics differ from reference numerics (docs/NUMERICS.md).
// Medians, since one expert that changes is an outlier; greedy tokens where the difference cannot
// reach.
TEST(Ranks, TwoDifferLessThanRoundingInNativeNumerics) {
  const Mode native{"native", kernels::Numerics::kNative, tensor::RowFormat::kFp8};
  ModelRig one(rig_options(native));
  ModelRig two(rig_options(native, kNano, 2));
  ModelRig exact(rig_options({"", kernels::Numerics::kReference, tensor::RowFormat::kF32}));
  std::vector<double> between_ranks;
  std::vector<double> of_rounding;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    const std::vector<TokenId> text = make_prompt(30 + seed, 60 + 30 * seed);
    const std::vector<float> from_one = one.run(0, text, 0, text.size());
    const std::vector<float> from_two = two.run(0, text, 0, text.size());
    between_ranks.push_back(relative_l2(from_two, from_one));
    of_rounding.push_back(relative_l2(from_one, exact.run(0, text, 0, text.size())));
    if (margin(from_one) > 2 * testing::max_difference(from_two, from_one)) {
      EXPECT_EQ(greedy(from_two), greedy(from_one)) << "prompt " << seed;
    }
  }
  EXPECT_LT(median(between_ranks), median(of_rounding));
}

TEST_P(Invariance, SnapshotsResumeExactly) {
  ModelRig rig(rig_options(GetParam()));
  const std::vector<TokenId> prompt = make_prompt(9, 391);
  const std::vector<float> expected = in_chunks(rig, 0, prompt, {});
  for (const std::size_t at : {128U, 256U, 384U}) {
    rig.run(1, prompt, 0, at);
    cache::KvCache& cache = rig.head().kv_cache();
    std::vector<std::uint8_t> snapshot(static_cast<std::size_t>(cache.layout().snapshot_bytes()));
    cache.save_snapshot(1, static_cast<Position>(at), snapshot);
    in_chunks(rig, 2, make_prompt(20, 200), {});  // another sequence uses the slot meanwhile
    std::vector<PageId> pages;
    for (std::int64_t i = 0; i < cache.layout().max_pages_per_slot(); ++i) {
      pages.push_back(cache.page(1, i));
    }
    std::vector<PageId> own;
    for (std::int64_t i = 0; i < cache.layout().max_pages_per_slot(); ++i) {
      own.push_back(cache.page(2, i));
    }
    cache.set_pages(2, 0, pages);
    cache.restore_snapshot(2, static_cast<Position>(at), snapshot);
    EXPECT_EQ(rig.run(2, prompt, at, prompt.size() - at), expected) << "from " << at;
    cache.set_pages(2, 0, own);
  }
}

// Draft caches are fed by accepted rows alone, however those were cut.
TEST_P(Invariance, DraftsDoNotDependOnTheCut) {
  for (const char* model : {kNano, kNanoDspark}) {
    ModelRig rig(rig_options(GetParam(), model));
    const std::vector<TokenId> prompt = make_prompt(11, 200);
    const std::int32_t n_drafts = rig.head().draft_kind() == DraftKind::kDspark ? 5 : 3;
    std::vector<std::vector<TokenId>> drafted;
    for (const std::size_t chunk : {200U, 64U, 7U}) {
      ModelRig::Drafts drafts;
      for (std::size_t first = 0; first < prompt.size(); first += chunk) {
        const std::size_t n = std::min<std::size_t>(chunk, prompt.size() - first);
        const bool last = first + n == prompt.size();
        rig.run(0, prompt, first, n);
        drafts = rig.draft(
            {0, static_cast<std::int32_t>(n), last ? 17 : prompt[first + n], last ? n_drafts : 0});
      }
      drafted.push_back(drafts.tokens);
    }
    EXPECT_EQ(drafted[1], drafted[0]) << model;
    EXPECT_EQ(drafted[2], drafted[0]) << model;
    EXPECT_EQ(drafted[0].size(), static_cast<std::size_t>(n_drafts));
  }
}

std::string mode_name(const ::testing::TestParamInfo<Mode>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Invariance,
    ::testing::Values(Mode{"reference", kernels::Numerics::kReference, tensor::RowFormat::kF32},
                      Mode{"native_bf16", kernels::Numerics::kNative, tensor::RowFormat::kBf16},
                      Mode{"native_fp8", kernels::Numerics::kNative, tensor::RowFormat::kFp8}),
    mode_name);

// bf16 and fp8 rows hold native values exactly (model.md 4.2).
TEST(RowFormats, NativeLogitsDoNotDependOnThem) {
  const std::vector<TokenId> prompt = make_prompt(12, 300);
  std::vector<std::vector<float>> all;
  for (const tensor::RowFormat format : {tensor::RowFormat::kBf16, tensor::RowFormat::kFp8}) {
    ModelRig rig(rig_options({"", kernels::Numerics::kNative, format}));
    all.push_back(rig.run(0, prompt, 0, prompt.size()));
  }
  EXPECT_EQ(all[1], all[0]);
}

}  // namespace
}  // namespace tandem::v4
