// config.json in and out, and how the variants are told apart.
#include "model/v4/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::v4 {
namespace {

using ::testing::HasSubstr;

std::string config_text(const ModelConfig& config) {
  return json::dump(config_to_json(config));
}

Status resolve(ModelConfig& config, const std::vector<std::string>& names) {
  return resolve_draft(config, names);
}

TEST(Config, ReadsBackWhatItWrites) {
  for (const DraftKind draft : {DraftKind::kNone, DraftKind::kMtp, DraftKind::kDspark}) {
    for (const ModelConfig& config : {flash_config(draft), tiny_config(draft)}) {
      const Result<ModelConfig> read = parse_config(config_text(config));
      ASSERT_TRUE(read.ok()) << read.status().message();
      ModelConfig again = *read;
      again.draft = config.draft;
      again.n_draft_layers = config.n_draft_layers;
      EXPECT_EQ(config_text(again), config_text(config));
    }
  }
}

// SOURCE: model.md 1.3.
TEST(Config, FlashHasTheLayersOfTheTable) {
  const ModelConfig config = flash_config(DraftKind::kDspark);
  EXPECT_EQ(config.n_layers_with(0), 2);
  EXPECT_EQ(config.n_layers_with(4), 21);
  EXPECT_EQ(config.n_layers_with(128), 20);
  EXPECT_EQ(config.attention_kind(0), AttentionKind::kWindow);
  EXPECT_EQ(config.attention_kind(42), AttentionKind::kCsa);
  EXPECT_EQ(config.attention_kind(41), AttentionKind::kHca);
  EXPECT_EQ(config.attention_kind(43), AttentionKind::kWindow);
  EXPECT_EQ(config.dspark_target_layers, (std::vector<std::int32_t>{40, 41, 42}));
  EXPECT_TRUE(config.is_hash_layer(2));
  EXPECT_FALSE(config.is_hash_layer(3));
  EXPECT_EQ(config.hc_mixes(), 24);
}

TEST(Config, RefusesWhatTheEngineDoesNotCompute) {
  json::Value value = config_to_json(tiny_config(DraftKind::kNone));
  json::Object& config = value.as_object();
  config["scoring_func"] = "softmax";
  config["compress_ratios"].as_array()[1] = 8;
  config["moe_intermediate_size"] = 200;
  const Result<ModelConfig> first = parse_config(json::dump(value));
  EXPECT_THAT(first.status().message(), HasSubstr("scoring_func is \"softmax\", expected "
                                                  "\"sqrtsoftplus\""));
  EXPECT_THAT(first.status().message(), HasSubstr("compress_ratios[1] is 8, expected 0, 4 or 128"));
  config["scoring_func"] = "sqrtsoftplus";
  config["compress_ratios"].as_array()[1] = 0;
  const Result<ModelConfig> second = parse_config(json::dump(value));
  EXPECT_THAT(second.status().message(),
              HasSubstr("moe_intermediate_size is 200, expected a multiple of 128"));
}

TEST(Config, RefusesTextThatIsNoObject) {
  EXPECT_FALSE(parse_config("").ok());
  EXPECT_FALSE(parse_config("[1]").ok());
  EXPECT_FALSE(parse_config("{}").ok());
}

TEST(Config, TellsVariantsApartByTheirTensors) {
  ModelConfig config = flash_config(DraftKind::kNone);
  EXPECT_TRUE(resolve(config, {"embed.weight"}).ok());
  EXPECT_EQ(config.draft, DraftKind::kNone);
  EXPECT_TRUE(resolve(config, {"mtp.0.e_proj.weight"}).ok());
  EXPECT_EQ(config.draft, DraftKind::kMtp);
  EXPECT_EQ(config.n_draft_layers, 1);

  ModelConfig dspark = flash_config(DraftKind::kDspark);
  EXPECT_TRUE(resolve(dspark, {"mtp.0.main_proj.weight", "mtp.2.norm.weight"}).ok());
  EXPECT_EQ(dspark.draft, DraftKind::kDspark);
  EXPECT_EQ(dspark.n_draft_layers, 3);
}

TEST(Config, RefusesVariantsThatContradictTheConfig) {
  ModelConfig preview = flash_config(DraftKind::kMtp);
  EXPECT_THAT(resolve(preview, {"mtp.0.main_proj.weight"}).message(),
              HasSubstr("lacks the dspark_* keys"));
  EXPECT_THAT(resolve(preview, {"mtp.0.main_proj.weight", "mtp.0.e_proj.weight"}).message(),
              HasSubstr("both mtp.0.e_proj.weight"));
  EXPECT_THAT(resolve(preview, {"mtp.0.attn_norm.weight"}).message(), HasSubstr("neither"));
  ModelConfig dspark = flash_config(DraftKind::kDspark);
  EXPECT_THAT(resolve(dspark, {"mtp.0.e_proj.weight"}).message(),
              HasSubstr("config.json has dspark_* keys"));
}

TEST(Config, OneAndTwoRanksShareFlash) {
  const ModelConfig config = flash_config(DraftKind::kDspark);
  EXPECT_TRUE(check_world(config, 1).ok());
  EXPECT_TRUE(check_world(config, 2).ok());
  EXPECT_FALSE(check_world(config, 0).ok());
  EXPECT_FALSE(check_world(config, 3).ok());
}

}  // namespace
}  // namespace tandem::v4
