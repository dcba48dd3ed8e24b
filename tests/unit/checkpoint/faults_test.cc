// Every way in which a checkpoint can be wrong is found and named; nothing is half-loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/v4/inspect.h"
#include "tests/unit/checkpoint/broken_checkpoint.h"

namespace tandem::v4 {
namespace {

using checkpoint::Problem;
using checkpoint::ProblemKind;
using test::BrokenCheckpoint;
using ::testing::HasSubstr;

constexpr const char* kLayer0 = "model-00002-of-00007.safetensors";
constexpr const char* kLayer1 = "model-00003-of-00007.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

std::vector<Problem> problems_of(const BrokenCheckpoint& broken) {
  return check_model(broken.path(), 2, {}).problems.all();
}

// There is exactly this one problem.
void expect_only(const BrokenCheckpoint& broken, ProblemKind kind, const std::string& where,
                 const std::string& message) {
  const std::vector<Problem> problems = problems_of(broken);
  ASSERT_EQ(problems.size(), 1U) << check_model(broken.path(), 2, {}).problems.text();
  EXPECT_EQ(problem_kind_name(problems[0].kind), problem_kind_name(kind));
  EXPECT_EQ(problems[0].where, where);
  EXPECT_THAT(problems[0].message, HasSubstr(message));
}

void expect_load_fails(const BrokenCheckpoint& broken, const std::string& message) {
  const auto device = device::make_cpu_device();
  const Result<OpenedModel> model = open_model(broken.path(), 1);
  ASSERT_TRUE(model.ok()) << "headers are fine";
  const auto store = load_weights(*model, *device, {});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(store.status().message(), HasSubstr(message));
  for (const device::MemoryUse& use : device->memory()) {
    EXPECT_EQ(use.bytes, 0) << use.label << " is still held";
  }
}

TEST(Faults, AHealthyCheckpointHasNone) {
  for (const DraftKind draft : {DraftKind::kNone, DraftKind::kMtp, DraftKind::kDspark}) {
    const ModelReport report = check_model(test::small_checkpoint(draft), 2, {});
    EXPECT_TRUE(report.problems.empty()) << report.problems.text();
    EXPECT_EQ(report.model.config.draft, draft);
  }
}

TEST(Faults, MissingTensor) {
  BrokenCheckpoint broken;
  broken.edit_header(kLayer0, [](json::Object& header) {
    header["unknown.weight"] = header.at("layers.0.attn.kv_norm.weight");
    header.erase("layers.0.attn.kv_norm.weight");
  });
  const std::string text = check_model(broken.path(), 2, {}).problems.text();
  EXPECT_THAT(text,
              HasSubstr("missing: layers.0.attn.kv_norm.weight: is in no shard, expected BF16 "
                        "[512]"));
  EXPECT_THAT(text, HasSubstr("extra: unknown.weight: BF16 [512]"));
  EXPECT_THAT(text, HasSubstr("index mismatch: layers.0.attn.kv_norm.weight: the index puts it in "
                              "model-00002-of-00007.safetensors, which has it not"));
  EXPECT_THAT(text, HasSubstr("index mismatch: unknown.weight: is in "));
}

TEST(Faults, MissingShardIsOneProblem) {
  BrokenCheckpoint broken;
  broken.remove(kLayer1);
  expect_only(broken, ProblemKind::kUnreadable, kLayer1, "no such file");
}

TEST(Faults, BrokenLinkIsOneProblem) {
  BrokenCheckpoint broken;
  broken.remove(kLayer1);
  test::fs::create_symlink("../../blobs/gone", broken.path() / kLayer1);
  expect_only(broken, ProblemKind::kUnreadable, kLayer1, "broken link");
}

TEST(Faults, ExtraTensorAfterTheLast) {
  BrokenCheckpoint broken;
  std::int64_t end = 0;
  broken.edit_header(kLayer0, [&](json::Object& header) {
    for (const auto& member : header) {
      if (member.key() != "__metadata__") {
        end = std::max(end, member.value().at("data_offsets").at(1).as_int64());
      }
    }
    header["layers.0.attn.wq_a.bias"] = json::Object{
        {"dtype", "U8"}, {"shape", json::Array{4}}, {"data_offsets", json::Array{end, end + 4}}};
  });
  broken.edit(kLayer0, [](std::string& bytes) { bytes += "1234"; });
  const std::string text = check_model(broken.path(), 2, {}).problems.text();
  EXPECT_THAT(text, HasSubstr("extra: layers.0.attn.wq_a.bias: U8 [4] belongs to no part"));
}

TEST(Faults, DuplicateInTwoShards) {
  BrokenCheckpoint broken;
  broken.edit_header(kLayer1, [](json::Object& header) {
    header["layers.0.attn_norm.weight"] = header.at("layers.1.attn_norm.weight");
    header.erase("layers.1.attn_norm.weight");
  });
  const std::string text = check_model(broken.path(), 2, {}).problems.text();
  EXPECT_THAT(text, HasSubstr("duplicate: layers.0.attn_norm.weight: is in "
                              "model-00002-of-00007.safetensors and in "
                              "model-00003-of-00007.safetensors"));
  EXPECT_THAT(text, HasSubstr("missing: layers.1.attn_norm.weight"));
}

TEST(Faults, DuplicateInOneHeader) {
  BrokenCheckpoint broken;
  broken.edit(kLayer0, [](std::string& bytes) {
    std::string header = BrokenCheckpoint::header_text(bytes);
    const std::string data = bytes.substr(8 + header.size());
    header.insert(1, R"("layers.0.hc_ffn_base":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)");
    bytes = BrokenCheckpoint::with_length(header) + data;
  });
  expect_only(broken, ProblemKind::kBadHeader, kLayer0, "layers.0.hc_ffn_base: twice");
}

TEST(Faults, WrongDtype) {
  BrokenCheckpoint broken;
  broken.edit_header(kLayer0, [](json::Object& header) {
    header["layers.0.attn.wq_a.weight"].as_object()["dtype"] = "I8";
  });
  expect_only(broken, ProblemKind::kWrongDtype, "layers.0.attn.wq_a.weight",
              "is I8, expected F8_E4M3");
}

TEST(Faults, WrongShape) {
  BrokenCheckpoint broken;
  broken.edit_header(kLayer0, [](json::Object& header) {
    header["layers.0.attn.wq_a.weight"].as_object()["shape"] = json::Array{256, 128};
  });
  expect_only(broken, ProblemKind::kWrongShape, "layers.0.attn.wq_a.weight",
              "has shape [256, 128], expected [128, 256]");
}

TEST(Faults, TruncatedShard) {
  BrokenCheckpoint broken;
  broken.edit(kLayer1, [](std::string& bytes) { bytes.resize(bytes.size() - 100); });
  const ModelReport report = inspect_model(broken.path());
  ASSERT_EQ(report.problems.size(), 1U) << report.problems.text();
  EXPECT_EQ(report.problems.all()[0].kind, ProblemKind::kTruncated);
  EXPECT_THAT(report.problems.text(), HasSubstr("its header describes"));
  EXPECT_FALSE(open_model(broken.path(), 1).ok());
}

TEST(Faults, TrailingBytes) {
  BrokenCheckpoint broken;
  broken.edit(kLayer1, [](std::string& bytes) { bytes += "tail"; });
  expect_only(broken, ProblemKind::kBadHeader, kLayer1, "4 more than its header describes");
}

TEST(Faults, PointerFileInPlaceOfAShard) {
  BrokenCheckpoint broken;
  broken.edit(kLayer1, [](std::string& bytes) {
    bytes = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123\n";
  });
  expect_only(broken, ProblemKind::kPointerFile, kLayer1, "git lfs pull");
}

TEST(Faults, EmptyAndGarbageShards) {
  BrokenCheckpoint broken;
  broken.edit(kLayer0, [](std::string& bytes) { bytes.clear(); });
  broken.edit(kLayer1, [](std::string& bytes) { bytes.assign(100, '\xFF'); });
  const std::vector<Problem> problems = problems_of(broken);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_THAT(problems[0].message, HasSubstr("0 bytes long"));
  EXPECT_THAT(problems[1].message, HasSubstr("header length 18446744073709551615"));
}

TEST(Faults, IndexPutsATensorIntoTheWrongShard) {
  BrokenCheckpoint broken;
  broken.edit_json(kIndexFile, [](json::Object& index) {
    index["weight_map"].as_object()["layers.0.attn_norm.weight"] = kLayer1;
  });
  expect_only(broken, ProblemKind::kIndexMismatch, "layers.0.attn_norm.weight",
              "the index puts it in model-00003-of-00007.safetensors, it is in "
              "model-00002-of-00007.safetensors");
}

TEST(Faults, IndexLacksATensor) {
  BrokenCheckpoint broken;
  broken.edit_json(kIndexFile, [](json::Object& index) {
    index["weight_map"].as_object().erase("layers.0.attn_norm.weight");
  });
  expect_only(broken, ProblemKind::kIndexMismatch, "layers.0.attn_norm.weight",
              "but not in the index");
}

TEST(Faults, IndexTotalIsWrong) {
  BrokenCheckpoint broken;
  broken.edit_json(kIndexFile,
                   [](json::Object& index) { index["metadata"].as_object()["total_size"] = 12; });
  expect_only(broken, ProblemKind::kIndexMismatch, kIndexFile, "metadata.total_size is 12");
}

TEST(Faults, IndexNamesAFileElsewhere) {
  BrokenCheckpoint broken;
  broken.edit_json(kIndexFile, [](json::Object& index) {
    index["weight_map"].as_object()["embed.weight"] = "../secret.safetensors";
  });
  EXPECT_THAT(check_model(broken.path(), 1, {}).problems.text(),
              HasSubstr("weight_map[embed.weight] is \"../secret.safetensors\", expected a file "
                        "name in the same folder"));
}

TEST(Faults, IndexIsMissing) {
  BrokenCheckpoint broken;
  broken.remove(kIndexFile);
  expect_only(broken, ProblemKind::kUnreadable, kIndexFile, "is missing, but there are 7 shards");
}

TEST(Faults, ShardThatTheIndexDoesNotName) {
  BrokenCheckpoint broken;
  broken.edit("consolidated.safetensors", [](std::string& bytes) { bytes = "x"; });
  expect_only(broken, ProblemKind::kIndexMismatch, "consolidated.safetensors",
              "is in the folder, but not in the index");
}

TEST(Faults, NanScale) {
  BrokenCheckpoint broken;
  broken.edit_tensor(kLayer0, "layers.0.ffn.experts.3.w2.scale",
                     [](char* data, std::size_t) { data[17] = '\xFF'; });
  expect_only(broken, ProblemKind::kBadValue, "layers.0.ffn.experts.3.w2.scale",
              "1 of 2048 values are NaN (byte 255), the first at element 17");
  expect_load_fails(broken, "layers.0.ffn.experts.3.w2.scale");
}

TEST(Faults, NanWeights) {
  BrokenCheckpoint broken;
  broken.edit_tensor(kLayer0, "layers.0.attn.wo_b.weight", [](char* data, std::size_t bytes) {
    data[0] = '\x7F';
    data[bytes - 1] = '\xFF';
  });
  broken.edit_tensor(kLayer1, "layers.1.attn_norm.weight",
                     [](char* data, std::size_t) { std::memcpy(data, "\xC0\x7F", 2); });
  broken.edit_tensor(kLayer1, "layers.1.hc_attn_base", [](char* data, std::size_t) {
    const float infinity = std::numeric_limits<float>::infinity();
    std::memcpy(data + 8, &infinity, 4);
  });
  const std::vector<Problem> problems = problems_of(broken);
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_THAT(problems[0].message, HasSubstr("2 of 65536 values are NaN"));
  EXPECT_THAT(problems[1].message, HasSubstr("1 of 256 values are not finite"));
  EXPECT_THAT(problems[2].message, HasSubstr("the first at element 2"));
  expect_load_fails(broken, "3 problems");
}

TEST(Faults, ExpertIdOutOfRange) {
  BrokenCheckpoint broken;
  broken.edit_tensor(kLayer0, "layers.0.ffn.gate.tid2eid",
                     [](char* data, std::size_t) { data[8 * 5] = 4; });
  expect_only(broken, ProblemKind::kBadValue, "layers.0.ffn.gate.tid2eid",
              "1 of 1024 values are out of range, the first at element 5; expected 0..3");
  expect_load_fails(broken, "tid2eid");
}

TEST(Faults, BadConfigNamesEveryKey) {
  BrokenCheckpoint broken;
  broken.edit_json("config.json", [](json::Object& config) {
    config["head_dim"] = 128;
    config["hidden_size"] = "large";
    config.erase("q_lora_rank");
    config["quantization_config"].as_object()["scale_fmt"] = "float";
  });
  const std::string text = check_model(broken.path(), 1, {}).problems.text();
  EXPECT_THAT(text, HasSubstr("head_dim is 128, expected 512"));
  EXPECT_THAT(text, HasSubstr("hidden_size is \"large\", expected an integer"));
  EXPECT_THAT(text, HasSubstr("q_lora_rank is missing, expected an integer"));
  EXPECT_THAT(text, HasSubstr("quantization_config.scale_fmt is \"float\", expected \"ue8m0\""));
}

TEST(Faults, NoConfig) {
  BrokenCheckpoint broken;
  broken.edit("config.json", [](std::string& text) { text = "{"; });
  EXPECT_TRUE(inspect_model(broken.path()).problems.has(ProblemKind::kConfig));
  test::TempFolder empty;
  const Result<OpenedModel> model = open_model(empty.path(), 1);
  EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(model.status().message(), HasSubstr("neither config.json nor snapshots/"));
  EXPECT_EQ(open_model("/nonexistent", 1).status().code(), StatusCode::kNotFound);
}

TEST(Faults, ManyProblemsAreOneReport) {
  BrokenCheckpoint broken;
  broken.edit(kLayer0, [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  broken.remove(kLayer1);
  broken.edit_json("config.json", [](json::Object& config) { config["n_routed_experts"] = 16; });
  const Status status = open_model(broken.path(), 1).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("truncated: model-00002-of-00007.safetensors"));
  EXPECT_THAT(status.message(), HasSubstr("unreadable: model-00003-of-00007.safetensors"));
  EXPECT_THAT(status.message(), HasSubstr("missing: layers.0.ffn.experts.4.w1.weight"));
  EXPECT_THAT(status.message(), HasSubstr("wrong shape: layers.2.ffn.gate.weight"));
  EXPECT_THAT(status.message(), HasSubstr(" more"));
}

TEST(Faults, RanksThatCannotShare) {
  const Result<OpenedModel> model = open_model(test::small_checkpoint(), 3);
  EXPECT_THAT(
      model.status().message(),
      HasSubstr("3 ranks cannot share this model: vocab_size is 512, expected a multiple of "
                "3; num_attention_heads is 4"));
}

}  // namespace
}  // namespace tandem::v4
