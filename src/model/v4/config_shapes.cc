// Known shapes, and config.json from a ModelConfig.
#include <algorithm>

#include "compute/tensor/row_format.h"
#include "model/v4/config.h"

namespace tandem::v4 {
namespace {

// What both shapes share. SOURCE: model.md 1.1.
ModelConfig common_config() {
  ModelConfig config;
  config.rope_theta = 10000;
  config.compress_rope_theta = 160000;
  config.yarn = {16, 65536, 32, 1};
  config.max_positions = 1048576;
  config.n_hash_layers = 3;
  config.routed_scaling = 1.5F;
  config.swiglu_limit = 10.0F;
  config.norm_eps = 1e-6F;
  config.hc_mult = 4;
  config.hc_sinkhorn_iters = 20;
  config.hc_eps = 1e-6F;
  config.bos_token = 0;
  config.eos_token = 1;
  return config;
}

// [0, 0, 4, 128, 4, 128, ...]. SOURCE: model.md 1.3.
void set_layers(ModelConfig& config, std::int32_t n_layers) {
  config.n_layers = n_layers;
  config.n_hash_layers = std::min(config.n_hash_layers, n_layers);
  for (std::int32_t layer = 0; layer < n_layers; ++layer) {
    config.compress_ratios.push_back(layer < 2 ? 0 : layer % 2 == 0 ? 4 : 128);
  }
}

void set_draft(ModelConfig& config, DraftKind draft, std::int32_t markov_rank, TokenId noise) {
  constexpr std::int32_t kStages = 3;
  config.draft = draft;
  config.n_draft_layers = draft == DraftKind::kNone ? 0 : draft == DraftKind::kMtp ? 1 : kStages;
  if (draft != DraftKind::kDspark) {
    return;
  }
  config.dspark_block_size = 5;
  config.dspark_markov_rank = markov_rank;
  config.dspark_noise_token = noise;
  for (std::int32_t layer = std::max(0, config.n_layers - kStages); layer < config.n_layers;
       ++layer) {
    config.dspark_target_layers.push_back(layer);
  }
}

// The shortest decimal that reads back as this float: 1e-06, not 9.99999997e-07.
double decimal(float value) {
  return std::stod(fmt::format("{}", value));
}

void add_fixed(json::Object& out) {
  out["architectures"] = json::Array{"DeepseekV4ForCausalLM"};
  out["model_type"] = "deepseek_v4";
  out["torch_dtype"] = "bfloat16";
  out["transformers_version"] = "4.57.1";
  out["num_key_value_heads"] = 1;
  out["head_dim"] = tensor::kHeadDim;
  out["qk_rope_head_dim"] = tensor::kRopeDim;
  out["index_head_dim"] = tensor::kIndexDim;
  out["sliding_window"] = tensor::kWindowTokens;
  out["n_shared_experts"] = 1;
  out["scoring_func"] = "sqrtsoftplus";
  out["topk_method"] = "noaux_tc";
  out["norm_topk_prob"] = true;
  out["hidden_act"] = "silu";
  out["tie_word_embeddings"] = false;
  out["attention_bias"] = false;
  out["attention_dropout"] = 0.0;
  out["initializer_range"] = 0.02;
  out["expert_dtype"] = "fp4";
  out["quantization_config"] = json::Object{{"quant_method", "fp8"},
                                            {"fmt", "e4m3"},
                                            {"scale_fmt", "ue8m0"},
                                            {"weight_block_size", json::Array{128, 128}},
                                            {"activation_scheme", "dynamic"}};
}

void add_draft(const ModelConfig& config, json::Object& out) {
  json::Array ratios(config.compress_ratios.begin(), config.compress_ratios.end());
  ratios.resize(ratios.size() + static_cast<std::size_t>(config.n_draft_layers), 0);
  out["compress_ratios"] = std::move(ratios);
  out["num_nextn_predict_layers"] = config.draft == DraftKind::kNone ? 0 : 1;
  if (config.dspark_block_size != 0) {
    out["dspark_block_size"] = config.dspark_block_size;
    out["dspark_markov_rank"] = config.dspark_markov_rank;
    out["dspark_noise_token_id"] = config.dspark_noise_token;
    out["dspark_target_layer_ids"] =
        json::Array(config.dspark_target_layers.begin(), config.dspark_target_layers.end());
  }
}

}  // namespace

ModelConfig flash_config(DraftKind draft, std::int32_t n_layers) {
  ModelConfig config = common_config();
  config.vocab_size = 129280;
  config.hidden = 4096;
  config.n_heads = 64;
  config.q_lora = 1024;
  config.o_groups = 8;
  config.o_lora = 1024;
  config.index_heads = 64;
  config.index_top_k = 512;
  config.n_experts = 256;
  config.expert_top_k = 6;
  config.moe_inter = 2048;
  set_layers(config, std::clamp(n_layers, 1, 43));
  set_draft(config, draft, 256, 128799);
  return config;
}

ModelConfig tiny_config(DraftKind draft, std::int32_t n_layers) {
  ModelConfig config = common_config();
  config.vocab_size = 512;
  config.hidden = 256;
  config.n_heads = 4;
  config.q_lora = 128;
  config.o_groups = 2;
  config.o_lora = 128;
  config.index_heads = 8;
  config.index_top_k = 64;
  config.n_experts = 8;
  config.expert_top_k = 2;
  config.moe_inter = 256;
  set_layers(config, std::max(n_layers, 1));
  set_draft(config, draft, 64, 259);
  return config;
}

json::Value config_to_json(const ModelConfig& config) {
  json::Object out;
  add_fixed(out);
  out["vocab_size"] = config.vocab_size;
  out["hidden_size"] = config.hidden;
  out["num_hidden_layers"] = config.n_layers;
  out["num_attention_heads"] = config.n_heads;
  out["q_lora_rank"] = config.q_lora;
  out["o_groups"] = config.o_groups;
  out["o_lora_rank"] = config.o_lora;
  out["index_n_heads"] = config.index_heads;
  out["index_topk"] = config.index_top_k;
  out["n_routed_experts"] = config.n_experts;
  out["num_experts_per_tok"] = config.expert_top_k;
  out["moe_intermediate_size"] = config.moe_inter;
  out["num_hash_layers"] = config.n_hash_layers;
  out["routed_scaling_factor"] = decimal(config.routed_scaling);
  out["swiglu_limit"] = decimal(config.swiglu_limit);
  out["rms_norm_eps"] = decimal(config.norm_eps);
  out["hc_mult"] = config.hc_mult;
  out["hc_sinkhorn_iters"] = config.hc_sinkhorn_iters;
  out["hc_eps"] = decimal(config.hc_eps);
  out["rope_theta"] = config.rope_theta;
  out["compress_rope_theta"] = config.compress_rope_theta;
  out["max_position_embeddings"] = config.max_positions;
  out["rope_scaling"] =
      json::Object{{"type", "yarn"},
                   {"factor", config.yarn.factor},
                   {"original_max_position_embeddings", config.yarn.original_max_positions},
                   {"beta_fast", config.yarn.beta_fast},
                   {"beta_slow", config.yarn.beta_slow}};
  out["bos_token_id"] = config.bos_token;
  out["eos_token_id"] = config.eos_token;
  add_draft(config, out);
  return out;
}

}  // namespace tandem::v4
