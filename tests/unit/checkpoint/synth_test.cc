// Synthetic checkpoints: the same seed gives the same bytes, other words the same distribution.
#include "model/v4/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "compute/tensor/numeric_formats.h"
#include "model/checkpoint/shard_writer.h"
#include "model/text/tokenizer.h"
#include "model/v4/inspect.h"
#include "model/v4/open_model.h"
#include "model/v4/tensor_table.h"
#include "tests/unit/checkpoint/broken_checkpoint.h"

namespace tandem::v4 {
namespace {

using checkpoint::WeightStore;
using ::testing::HasSubstr;

std::map<std::string, std::string> all_files(const test::fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : test::fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = test::read_file(entry.path());
  }
  return files;
}

TEST(Synth, TheSameSeedGivesTheSameFiles) {
  test::TempFolder folder;
  SynthOptions options;
  options.config = test::small_config(DraftKind::kMtp);
  ASSERT_TRUE(write_synthetic_model(folder.path() / "a", options).ok());
  EXPECT_TRUE(all_files(folder.path() / "a") == all_files(test::small_checkpoint()));
  options.seed = 2;
  ASSERT_TRUE(write_synthetic_model(folder.path() / "b", options).ok());
  EXPECT_FALSE(all_files(folder.path() / "b") == all_files(test::small_checkpoint()));
}

TEST(Synth, RefusesAFolderThatIsNotEmpty) {
  SynthOptions options;
  options.config = test::small_config(DraftKind::kNone);
  const Status status = write_synthetic_model(test::small_checkpoint(), options);
  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
}

TEST(Synth, RefusesAShapeThatCannotBeRead) {
  test::TempFolder folder;
  SynthOptions options;
  options.config = test::small_config(DraftKind::kNone);
  options.config.hidden = 200;
  const Status status = write_synthetic_model(folder.path() / "m", options);
  EXPECT_THAT(status.message(), HasSubstr("hidden_size is 200"));
  EXPECT_FALSE(test::fs::exists(folder.path() / "m"));
  options.config = test::small_config(DraftKind::kNone);
  options.config.vocab_size = 256;
  EXPECT_THAT(write_synthetic_model(folder.path() / "m", options).message(),
              HasSubstr("vocab_size is 256, the byte-level tokenizer needs at least"));
}

// Root mean square of a dequantised matrix's rows, times sqrt(cols): near 1.
double row_length(const tensor::WeightMatrix& w) {
  double sum = 0;
  const auto* data = static_cast<const std::uint8_t*>(w.data);
  for (std::int64_t r = 0; r < w.rows; ++r) {
    for (std::int64_t c = 0; c < w.cols; ++c) {
      double value = 0;
      if (w.format == tensor::WeightFormat::kFp8) {
        value = tensor::e4m3_to_float(data[r * w.cols + c]) *
                tensor::e8m0_to_float(w.scales[(r / 128) * (w.cols / 128) + c / 128]);
      } else {
        const std::uint8_t pair = data[(r * w.cols + c) / 2];
        value =
            tensor::e2m1_to_float(static_cast<std::uint8_t>(c % 2 == 0 ? pair & 15 : pair >> 4)) *
            tensor::e8m0_to_float(w.scales[r * (w.cols / 32) + c / 32]);
      }
      sum += value * value;
    }
  }
  return std::sqrt(sum / static_cast<double>(w.rows));
}

TEST(Synth, WeightsKeepActivationsNearOne) {
  const OpenedModel model = open_model(test::small_checkpoint(), 1).value();
  const auto device = device::make_cpu_device();
  const WeightStore store = load_weights(model, *device, {}).value();
  for (const char* name : {"layers.0.attn.wq_a", "layers.2.attn.wo_b", "layers.1.ffn.experts.3.w1",
                           "layers.1.ffn.experts.0.w2", "mtp.0.e_proj"}) {
    const double length = row_length(store.matrix(name));
    EXPECT_GT(length, 0.5) << name;
    EXPECT_LT(length, 2.0) << name;
  }
  const std::int32_t* ids = store.i32("layers.2.ffn.gate.tid2eid");
  const auto top_k = static_cast<std::size_t>(model.config.expert_top_k);
  for (std::size_t token = 0; token < 512; ++token) {
    const std::set<std::int32_t> row(ids + token * top_k, ids + (token + 1) * top_k);
    EXPECT_EQ(row.size(), top_k) << "token " << token << " has an expert twice";
  }
}

TEST(Synth, TheTokenizerLoads) {
  for (const std::int32_t vocab_size : {512, 129280}) {
    const auto tokenizer = text::Tokenizer::parse(minimal_tokenizer_json(vocab_size).value());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_TRUE(tokenizer->require_chat_tokens().ok());
    EXPECT_EQ(tokenizer->vocab_size(), vocab_size);
    const std::string text = "Grüße, 世界 123 \n\n\t<think>";
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    EXPECT_EQ(tokenizer->special().dspark_noise, vocab_size == 512 ? 259 : 128799);
  }
}

// SOURCE: model.md 4.4.
TEST(Inspect, KvBytesPerTokenAreThoseOfTheSpecification) {
  test::BrokenCheckpoint broken(DraftKind::kNone);
  broken.edit("config.json", [](std::string& text) {
    text = json::dump(config_to_json(flash_config(DraftKind::kNone)));
  });
  std::map<std::string, double> per_token;
  for (const KvBytes& kv : inspect_model(broken.path()).kv) {
    per_token[kv.format] = kv.per_token;
  }
  EXPECT_NEAR(per_token.at("fp8 rows, fp8 index keys"), 3850, 1);
  EXPECT_NEAR(per_token.at("fp8 rows, mxfp4 index keys"), 3514, 1);
  EXPECT_NEAR(per_token.at("bf16 rows and index keys"), 6880, 1);
}

// All headers of a 0731 checkpoint of full size; the data are holes in sparse files.
TEST(Inspect, ReadsTheHeadersOfAFullCheckpoint) {
  test::TempFolder folder;
  const ModelConfig config = flash_config(DraftKind::kDspark);
  test::write_file(folder.path() / "config.json", json::dump(config_to_json(config)));
  const std::vector<checkpoint::TensorSpec> table = make_tensor_table(config);
  json::Object map;
  for (int layer = -1; layer < config.n_layers + config.n_draft_layers; ++layer) {
    std::vector<const checkpoint::TensorSpec*> shard;
    std::int64_t bytes = 0;
    const std::string name = fmt::format("model-{:05}-of-00047.safetensors", layer + 2);
    for (const checkpoint::TensorSpec& spec : table) {
      if (spec.layer == layer) {
        shard.push_back(&spec);
        bytes += spec.bytes();
        map[spec.name] = name;
      }
    }
    ASSERT_TRUE(checkpoint::ShardWriter::create(folder.path() / name, shard).ok());
    const std::uintmax_t header = test::fs::file_size(folder.path() / name);
    test::fs::resize_file(folder.path() / name, header + static_cast<std::uintmax_t>(bytes));
  }
  test::write_file(folder.path() / "model.safetensors.index.json",
                   json::dump(json::Object{{"metadata", json::Object{{"total_size", 166878536440}}},
                                           {"weight_map", std::move(map)}}));
  const ModelReport report = inspect_model(folder.path());
  EXPECT_TRUE(report.problems.empty()) << report.problems.text();
  EXPECT_EQ(report.model.files.tensors.size(), 72317U);
  EXPECT_EQ(report.model.config.n_draft_layers, 3);
  ASSERT_TRUE(report.ranks[1].possible);
  // model.md 3.5: 84.140 GB with the embedding split; this engine keeps all of it on each rank and
  // stores expert ids in 4 bytes instead of 8.
  const double expected = 84.140 + 0.530 + 0.033 - 0.009;
  EXPECT_NEAR(static_cast<double>(report.ranks[1].weight_bytes[0]) / 1e9, expected, 0.002);
}

TEST(Inspect, ReportsAsTextAndJson) {
  const ModelReport report = inspect_model(test::small_checkpoint(DraftKind::kDspark));
  EXPECT_THAT(report_text(report), HasSubstr("DSpark, 3 stages, 5 slots"));
  EXPECT_THAT(report_text(report), HasSubstr("no problems"));
  const json::Value value = json::parse(json::dump(report_json(report))).value();
  EXPECT_EQ(value.at("draft").as_string(), "dspark");
  EXPECT_EQ(value.at("problems").as_array().size(), 0U);
  std::int64_t bytes = 0;
  for (const json::Value& group : value.at("groups").as_array()) {
    bytes += group.at("bytes").as_int64();
  }
  std::int64_t expected = 0;
  for (const auto& tensor : report.model.files.tensors) {
    expected += static_cast<std::int64_t>(tensor.bytes);
  }
  EXPECT_EQ(bytes, expected);
  EXPECT_TRUE(value.at("ranks").at(1).at("possible").as_bool());
}

}  // namespace
}  // namespace tandem::v4
