// The tensor table against the published totals and against the headers of a real checkpoint.
#include "model/v4/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <fstream>
#include <map>
#include <sstream>

#include "foundation/json/json.h"

namespace tandem::v4 {
namespace {

using checkpoint::Slice;
using checkpoint::Split;
using checkpoint::TensorGroup;
using checkpoint::TensorSpec;
using tensor::DType;
using ::testing::HasSubstr;

std::int64_t total_bytes(const std::vector<TensorSpec>& table) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : table) {
    bytes += spec.bytes();
  }
  return bytes;
}

std::int64_t rank_bytes(const std::vector<TensorSpec>& table, int rank, int world) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : table) {
    bytes += checkpoint::slice_of(spec, rank, world).value().bytes();
  }
  return bytes;
}

std::map<std::string, const TensorSpec*> by_name(const std::vector<TensorSpec>& table) {
  std::map<std::string, const TensorSpec*> map;
  for (const TensorSpec& spec : table) {
    EXPECT_TRUE(map.emplace(spec.name, &spec).second) << spec.name << " is in the table twice";
  }
  return map;
}

// SOURCE: model.md 3.1.
TEST(TensorTable, HasTheTotalsOfTheThreeReleases) {
  const auto preview = make_tensor_table(flash_config(DraftKind::kMtp));
  EXPECT_EQ(preview.size(), 69187U);
  EXPECT_EQ(total_bytes(preview), 159609485896);
  const auto dspark = make_tensor_table(flash_config(DraftKind::kDspark));
  EXPECT_EQ(dspark.size(), 72317U);
  EXPECT_EQ(total_bytes(dspark), 166878536440);
  const auto main_only = make_tensor_table(flash_config(DraftKind::kNone));
  EXPECT_EQ(main_only.size(), 67612U);
  EXPECT_EQ(total_bytes(main_only), 156015698140);
}

// SOURCE: model.md 3.1, dtype counts of the preview.
TEST(TensorTable, HasThePreviewsDtypes) {
  std::map<DType, int> counts;
  for (const TensorSpec& spec : make_tensor_table(flash_config(DraftKind::kMtp))) {
    ++counts[spec.dtype];
  }
  EXPECT_EQ(counts[DType::kBf16], 433);
  EXPECT_EQ(counts[DType::kF32], 417);
  EXPECT_EQ(counts[DType::kF8E4M3], 375);
  EXPECT_EQ(counts[DType::kF8E8M0], 34167);
  EXPECT_EQ(counts[DType::kI64], 3);
  EXPECT_EQ(counts[DType::kI8], 33792);
}

// SOURCE: model.md 3.3, main-model sums.
TEST(TensorTable, HasTheBytesOfEachGroup) {
  std::map<TensorGroup, std::int64_t> bytes;
  for (const TensorSpec& spec : make_tensor_table(flash_config(DraftKind::kNone))) {
    bytes[spec.group] += spec.bytes();
  }
  EXPECT_EQ(bytes[TensorGroup::kExpertWeights], 138512695296);
  EXPECT_EQ(bytes[TensorGroup::kExpertScales], 8657043456);
  EXPECT_EQ(bytes[TensorGroup::kAttention], 4599478144);
  EXPECT_EQ(bytes[TensorGroup::kSharedExpert], 1082196480);
  EXPECT_EQ(bytes[TensorGroup::kCompressor], 525722624);
  EXPECT_EQ(bytes[TensorGroup::kIndexer], 275353344);
  EXPECT_EQ(bytes[TensorGroup::kHyperConnection], 135537756);
  EXPECT_EQ(bytes[TensorGroup::kRouter], 90218496);
  EXPECT_EQ(bytes[TensorGroup::kTokenExperts], 18616320);
  EXPECT_EQ(bytes[TensorGroup::kNorm], 712704);
  EXPECT_EQ(bytes[TensorGroup::kEmbedding] + bytes[TensorGroup::kHead], 2118123520);
}

json::Value pruned_checkpoint() {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) +
                         "/tests/data/checkpoint-shapes/0731-expert-pruned-160.json.zst",
                     std::ios::binary);
  std::ostringstream packed;
  packed << file.rdbuf();
  const std::string bytes = packed.str();
  std::string text(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
  const std::size_t size = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  EXPECT_EQ(size, text.size());
  return json::parse(text).value();
}

TEST(TensorTable, AgreesWithTheHeadersOfARealCheckpoint) {
  const json::Value real = pruned_checkpoint();
  ModelConfig config = flash_config(DraftKind::kDspark);
  config.n_experts = 160;
  const auto table = make_tensor_table(config);
  const auto specs = by_name(table);
  ASSERT_EQ(real.as_object().size(), 45821U);
  EXPECT_EQ(table.size(), 45821U);
  EXPECT_EQ(total_bytes(table), 107803320952);  // model.md 3.1
  for (const auto& member : real.as_object()) {
    const auto it = specs.find(std::string(member.key()));
    ASSERT_NE(it, specs.end()) << std::string(member.key());
    const json::Array& entry = member.value().as_array();
    EXPECT_EQ(std::string_view(entry[0].as_string()), tensor::dtype_name(it->second->dtype))
        << it->first;
    const json::Array shape(it->second->shape.begin(), it->second->shape.end());
    EXPECT_EQ(entry[1].as_array(), shape) << it->first;
  }
}

// Both of model.md 3.5 "vLLM-like" (shared split, indexer replicated), which counts half an embed.
TEST(TensorTable, SplitsOverTwoRanksAsTheSpecificationSays) {
  const auto table = make_tensor_table(flash_config(DraftKind::kNone));
  const std::int64_t half_embed = 129280LL * 4096 * 2 / 2;
  EXPECT_NEAR(static_cast<double>(rank_bytes(table, 0, 2) - half_embed) / 1e9, 78.666, 0.001);
  EXPECT_EQ(rank_bytes(table, 0, 2), rank_bytes(table, 1, 2));
  EXPECT_EQ(rank_bytes(table, 0, 1), total_bytes(table));
}

TEST(TensorTable, CutsEachKindOfTensorWhereItShould) {
  const auto table = make_tensor_table(flash_config(DraftKind::kDspark));
  const auto specs = by_name(table);
  const auto shape = [&](const std::string& name) {
    return checkpoint::slice_of(*specs.at(name), 1, 2).value().shape;
  };
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape("embed.weight"), (Shape{129280, 4096}));
  EXPECT_EQ(shape("head.weight"), (Shape{64640, 4096}));
  EXPECT_EQ(shape("layers.5.attn.wq_b.weight"), (Shape{16384, 1024}));
  EXPECT_EQ(shape("layers.5.attn.wq_b.scale"), (Shape{128, 8}));
  EXPECT_EQ(shape("layers.5.attn.wo_a.weight"), (Shape{4096, 4096}));
  EXPECT_EQ(shape("layers.5.attn.wo_a.scale"), (Shape{32, 32}));
  EXPECT_EQ(shape("layers.5.attn.wo_b.weight"), (Shape{4096, 4096}));
  EXPECT_EQ(shape("layers.5.attn.wo_b.scale"), (Shape{32, 32}));
  EXPECT_EQ(shape("layers.5.attn.attn_sink"), (Shape{32}));
  EXPECT_EQ(shape("layers.5.ffn.experts.255.w1.weight"), (Shape{1024, 2048}));
  EXPECT_EQ(shape("layers.5.ffn.experts.255.w1.scale"), (Shape{1024, 128}));
  EXPECT_EQ(shape("layers.5.ffn.experts.255.w2.weight"), (Shape{4096, 512}));
  EXPECT_EQ(shape("layers.5.ffn.experts.255.w2.scale"), (Shape{4096, 32}));
  EXPECT_EQ(shape("layers.5.ffn.shared_experts.w1.scale"), (Shape{8, 32}));
  EXPECT_EQ(shape("layers.5.ffn.shared_experts.w2.weight"), (Shape{4096, 1024}));
  EXPECT_EQ(shape("layers.4.attn.indexer.wq_b.weight"), (Shape{8192, 1024}));
  EXPECT_EQ(shape("mtp.2.markov_head.markov_w1.weight"), (Shape{129280, 256}));
  EXPECT_EQ(shape("mtp.2.markov_head.markov_w2.weight"), (Shape{64640, 256}));
}

TEST(TensorTable, RefusesToCutAScaleBlock) {
  TensorSpec spec;
  spec.name = "layers.0.ffn.shared_experts.w1.weight";
  spec.dtype = DType::kF8E4M3;
  spec.shape = {384, 256};
  spec.split = Split::kRows;
  spec.split_unit = 128;
  EXPECT_TRUE(checkpoint::slice_of(spec, 0, 3).ok());
  const Result<Slice> slice = checkpoint::slice_of(spec, 0, 2);
  ASSERT_FALSE(slice.ok());
  EXPECT_THAT(slice.status().message(),
              HasSubstr("layers.0.ffn.shared_experts.w1.weight: dim 0 has "
                        "384 elements"));
}

}  // namespace
}  // namespace tandem::v4
