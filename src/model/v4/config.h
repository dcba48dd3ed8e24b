// ModelConfig: config.json of a DeepSeek-V4 checkpoint under our words, checked. Sizes are free;
// only what the kernels fix at compile time (head_dim 512, rope 64, index 128, window 128) must
// match. SOURCE: model.md 1.1 - 1.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/ids.h"
#include "foundation/base/status.h"
#include "foundation/json/json.h"

namespace tandem::v4 {

enum class DraftKind {
  kNone,
  kMtp,     // preview checkpoint: one block, drafts chain; model.md 2.14
  kDspark,  // 0731 and -DSpark: up to 5 drafts in one pass; model.md 2.15
};

// "none", "mtp", "dspark".
std::string_view draft_kind_name(DraftKind kind);

// What a layer attends to besides its window.
enum class AttentionKind {
  kWindow,  // ratio 0
  kCsa,     // ratio 4: compressed rows chosen by the indexer
  kHca,     // ratio 128: all compressed rows
};

struct YarnConfig {
  double factor = 0;
  std::int64_t original_max_positions = 0;
  double beta_fast = 0;
  double beta_slow = 0;
};

struct ModelConfig {
  std::int32_t vocab_size = 0;
  std::int32_t hidden = 0;
  std::int32_t n_layers = 0;
  std::int32_t n_heads = 0;
  std::int32_t q_lora = 0;
  std::int32_t o_groups = 0;
  std::int32_t o_lora = 0;                    // per group
  std::vector<std::int32_t> compress_ratios;  // [n_layers] 0, 4 or 128
  double rope_theta = 0;                      // ratio 0 and draft layers
  double compress_rope_theta = 0;             // ratio 4 and 128, with yarn
  YarnConfig yarn;
  std::int64_t max_positions = 0;
  std::int32_t index_heads = 0;
  std::int32_t index_top_k = 0;
  std::int32_t n_experts = 0;
  std::int32_t expert_top_k = 0;
  std::int32_t moe_inter = 0;  // of routed and shared experts
  std::int32_t n_hash_layers = 0;
  float routed_scaling = 0;
  float swiglu_limit = 0;
  float norm_eps = 0;
  std::int32_t hc_mult = 0;
  std::int32_t hc_sinkhorn_iters = 0;
  float hc_eps = 0;
  TokenId bos_token = 0;
  TokenId eos_token = 0;

  // From the tensors, see resolve_draft().
  DraftKind draft = DraftKind::kNone;
  std::int32_t n_draft_layers = 0;  // 1 MTP block or the DSpark stages

  // DSpark keys; 0 and empty if config.json has none.
  std::int32_t dspark_block_size = 0;
  std::int32_t dspark_markov_rank = 0;
  TokenId dspark_noise_token = 0;
  std::vector<std::int32_t> dspark_target_layers;

  AttentionKind attention_kind(std::int32_t layer) const;
  bool is_hash_layer(std::int32_t layer) const { return layer < n_hash_layers; }
  // Rows of hc_*_fn of a layer's sites: pre, post and the mixing matrix.
  std::int32_t hc_mixes() const { return (2 + hc_mult) * hc_mult; }
  std::int64_t hc_width() const { return std::int64_t{hc_mult} * hidden; }
  std::int32_t n_layers_with(std::int32_t ratio) const;
};

// Parses and checks config.json. The draft fields stay kNone until resolve_draft().
// ERRORS: kInvalidArgument with one line per wrong or missing key: key, found, expected.
Result<ModelConfig> parse_config(std::string_view text);

// Tells the variants apart by the names of the checkpoint's tensors: mtp.0.main_proj.weight is
// DSpark, mtp.0.e_proj.weight is MTP. ERRORS: kInvalidArgument if both or neither explain the
// mtp.* tensors, or if the config lacks the keys of the variant.
Status resolve_draft(ModelConfig& config, std::span<const std::string> tensor_names);

// ERRORS: kInvalidArgument names every size that `world` ranks cannot share.
Status check_world(const ModelConfig& config, int world);

// The config.json that parse_config() reads back.
json::Value config_to_json(const ModelConfig& config);

// The shapes of DeepSeek-V4-Flash with its first n_layers layers, at most 43.
// SOURCE: model.md 1.1, 1.3.
ModelConfig flash_config(DraftKind draft, std::int32_t n_layers = 43);

// A small model with every kind of layer, for tests: 7 layers, hidden 256, 16 experts.
ModelConfig tiny_config(DraftKind draft, std::int32_t n_layers = 7);

}  // namespace tandem::v4
