#include "model/v4/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "compute/tensor/row_format.h"

namespace tandem::v4 {
namespace {

constexpr std::int64_t kBlock = 128;  // FP8 weights have a scale per 128 x 128

// Reads members of one JSON object and notes everything that is wrong with them.
class ConfigReader {
 public:
  ConfigReader(const json::Value& object, std::string path, std::vector<std::string>& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {}

  bool has(std::string_view key) const { return json::find(object_, key) != nullptr; }

  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) {
    const json::Value* value = json::find(object_, key);
    if (value != nullptr && value->is_int64() && value->get_int64() >= min &&
        value->get_int64() <= max) {
      return value->get_int64();
    }
    wrong(key, value, fmt::format("an integer from {} to {}", min, max));
    return min;
  }

  std::int32_t size(std::string_view key, std::int64_t max = std::int64_t{1} << 24) {
    return static_cast<std::int32_t>(integer(key, 1, max));
  }

  double positive(std::string_view key) {
    const json::Value* value = json::find(object_, key);
    const double number = value == nullptr     ? 0
                          : value->is_int64()  ? static_cast<double>(value->get_int64())
                          : value->is_double() ? value->get_double()
                                               : 0;
    if (!(number > 0) || number > std::numeric_limits<float>::max()) {
      wrong(key, value, "a number over 0");
      return 1;
    }
    return number;
  }

  // The key must have exactly this value: the engine computes only that.
  void fixed(std::string_view key, const json::Value& expected) {
    const json::Value* value = json::find(object_, key);
    if (value == nullptr || *value != expected) {
      wrong(key, value, json::dump(expected));
    }
  }

  std::vector<std::int32_t> integers(std::string_view key, std::int64_t min, std::int64_t max) {
    const json::Value* value = json::find(object_, key);
    std::vector<std::int32_t> list;
    if (value != nullptr && value->is_array()) {
      for (const json::Value& item : value->get_array()) {
        if (!item.is_int64() || item.get_int64() < min || item.get_int64() > max) {
          wrong(key, value, fmt::format("integers from {} to {}", min, max));
          return {};
        }
        list.push_back(static_cast<std::int32_t>(item.get_int64()));
      }
      return list;
    }
    wrong(key, value, "an array of integers");
    return list;
  }

  void wrong(std::string_view key, const json::Value* found, std::string_view expected) {
    constexpr std::size_t kMaxShown = 120;
    std::string shown = found == nullptr ? "missing" : json::dump(*found);
    if (shown.size() > kMaxShown) {
      shown.resize(kMaxShown);
      shown += "...";
    }
    problems_.push_back(fmt::format("{}{} is {}, expected {}", path_, key, shown, expected));
  }

 private:
  const json::Value& object_;
  std::string path_;
  std::vector<std::string>& problems_;
};

void read_fixed(ConfigReader& reader) {
  reader.fixed("model_type", "deepseek_v4");
  reader.fixed("num_key_value_heads", 1);
  reader.fixed("head_dim", tensor::kHeadDim);
  reader.fixed("qk_rope_head_dim", tensor::kRopeDim);
  reader.fixed("index_head_dim", tensor::kIndexDim);
  reader.fixed("sliding_window", tensor::kWindowTokens);
  reader.fixed("n_shared_experts", 1);
  reader.fixed("scoring_func", "sqrtsoftplus");
  reader.fixed("topk_method", "noaux_tc");
  reader.fixed("norm_topk_prob", true);
  reader.fixed("hidden_act", "silu");
  reader.fixed("tie_word_embeddings", false);
  reader.fixed("expert_dtype", "fp4");
}

void read_quantisation(const json::Value& root, ConfigReader& reader,
                       std::vector<std::string>& problems) {
  const json::Value* value = json::find(root, "quantization_config");
  if (value == nullptr || !value->is_object()) {
    reader.wrong("quantization_config", value, "an object");
    return;
  }
  ConfigReader quantisation(*value, "quantization_config.", problems);
  quantisation.fixed("quant_method", "fp8");
  quantisation.fixed("fmt", "e4m3");
  quantisation.fixed("scale_fmt", "ue8m0");
  quantisation.fixed("weight_block_size", json::Array{kBlock, kBlock});
  quantisation.fixed("activation_scheme", "dynamic");
}

void read_rope(const json::Value& root, ConfigReader& reader, ModelConfig& config,
               std::vector<std::string>& problems) {
  config.rope_theta = reader.positive("rope_theta");
  config.compress_rope_theta = reader.positive("compress_rope_theta");
  config.max_positions = reader.integer("max_position_embeddings", 1, std::int64_t{1} << 40);
  const json::Value* value = json::find(root, "rope_scaling");
  if (value == nullptr || !value->is_object()) {
    reader.wrong("rope_scaling", value, "an object");
    return;
  }
  ConfigReader rope(*value, "rope_scaling.", problems);
  rope.fixed(rope.has("type") ? "type" : "rope_type", "yarn");
  config.yarn.factor = rope.positive("factor");
  config.yarn.original_max_positions =
      rope.integer("original_max_position_embeddings", 1, std::int64_t{1} << 40);
  config.yarn.beta_fast = rope.positive("beta_fast");
  config.yarn.beta_slow = rope.positive("beta_slow");
}

void read_sizes(ConfigReader& reader, ModelConfig& config) {
  config.vocab_size = reader.size("vocab_size");
  config.hidden = reader.size("hidden_size", 1 << 20);
  config.n_layers = reader.size("num_hidden_layers", 4096);
  config.n_heads = reader.size("num_attention_heads", 4096);
  config.q_lora = reader.size("q_lora_rank", 1 << 20);
  config.o_groups = reader.size("o_groups", 4096);
  config.o_lora = reader.size("o_lora_rank", 1 << 20);
  config.index_heads = reader.size("index_n_heads", 4096);
  config.index_top_k = reader.size("index_topk", 1 << 20);
  config.n_experts = reader.size("n_routed_experts", 1 << 16);
  config.expert_top_k = reader.size("num_experts_per_tok", 256);
  config.moe_inter = reader.size("moe_intermediate_size", 1 << 20);
  config.n_hash_layers = static_cast<std::int32_t>(reader.integer("num_hash_layers", 0, 4096));
  config.routed_scaling = static_cast<float>(reader.positive("routed_scaling_factor"));
  config.swiglu_limit = static_cast<float>(reader.positive("swiglu_limit"));
  config.norm_eps = static_cast<float>(reader.positive("rms_norm_eps"));
  config.hc_mult = reader.size("hc_mult", 8);
  config.hc_sinkhorn_iters = reader.size("hc_sinkhorn_iters", 1000);
  config.hc_eps = static_cast<float>(reader.positive("hc_eps"));
  config.bos_token = static_cast<TokenId>(reader.integer("bos_token_id", 0, config.vocab_size - 1));
  config.eos_token = static_cast<TokenId>(reader.integer("eos_token_id", 0, config.vocab_size - 1));
}

// Entries after the main layers belong to draft stages, which have no compressor. model.md 1.2.
void read_ratios(ConfigReader& reader, ModelConfig& config, std::vector<std::string>& problems) {
  config.compress_ratios = reader.integers("compress_ratios", 0, 128);
  const auto n_layers = static_cast<std::size_t>(config.n_layers);
  if (config.compress_ratios.size() < n_layers) {
    problems.push_back(
        fmt::format("compress_ratios has {} entries, expected one for each of {} "
                    "layers",
                    config.compress_ratios.size(), config.n_layers));
  }
  config.compress_ratios.resize(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) {
    const std::int32_t ratio = config.compress_ratios[i];
    if (ratio != 0 && ratio != 4 && ratio != 128) {
      problems.push_back(fmt::format("compress_ratios[{}] is {}, expected 0, 4 or 128", i, ratio));
    }
  }
}

void read_dspark(ConfigReader& reader, ModelConfig& config) {
  constexpr std::string_view kKeys[] = {"dspark_block_size", "dspark_markov_rank",
                                        "dspark_noise_token_id", "dspark_target_layer_ids"};
  if (std::none_of(std::begin(kKeys), std::end(kKeys),
                   [&](std::string_view key) { return reader.has(key); })) {
    return;
  }
  config.dspark_block_size = reader.size("dspark_block_size", 64);
  config.dspark_markov_rank = reader.size("dspark_markov_rank", 1 << 16);
  config.dspark_noise_token =
      static_cast<TokenId>(reader.integer("dspark_noise_token_id", 0, config.vocab_size - 1));
  config.dspark_target_layers = reader.integers("dspark_target_layer_ids", 0, config.n_layers - 1);
}

void check_sizes(const ModelConfig& config, std::vector<std::string>& problems) {
  const auto blocks = [&](std::string_view key, std::int64_t value) {
    if (value % kBlock != 0) {
      problems.push_back(fmt::format("{} is {}, expected a multiple of {} (FP8 scale blocks)", key,
                                     value, kBlock));
    }
  };
  blocks("hidden_size", config.hidden);
  blocks("q_lora_rank", config.q_lora);
  blocks("o_lora_rank", config.o_lora);
  blocks("moe_intermediate_size", config.moe_inter);
  if (config.n_heads % config.o_groups != 0) {
    problems.push_back(fmt::format("num_attention_heads is {}, expected a multiple of o_groups {}",
                                   config.n_heads, config.o_groups));
  }
  if (config.expert_top_k > config.n_experts) {
    problems.push_back(
        fmt::format("num_experts_per_tok is {}, expected at most n_routed_experts "
                    "{}",
                    config.expert_top_k, config.n_experts));
  }
}

// The stage of "mtp.S.rest", or -1.
std::int32_t draft_stage(std::string_view name) {
  constexpr std::string_view kPrefix = "mtp.";
  if (name.substr(0, kPrefix.size()) != kPrefix) {
    return -1;
  }
  name.remove_prefix(kPrefix.size());
  const std::size_t digits = std::min(name.find('.'), name.size());
  if (digits != 1 || name[0] < '0' || name[0] > '9') {
    return -1;
  }
  return name[0] - '0';
}

}  // namespace

std::string_view draft_kind_name(DraftKind kind) {
  switch (kind) {
    case DraftKind::kNone:
      return "none";
    case DraftKind::kMtp:
      return "mtp";
    case DraftKind::kDspark:
      return "dspark";
  }
  return "?";
}

AttentionKind ModelConfig::attention_kind(std::int32_t layer) const {
  if (layer >= n_layers) {
    return AttentionKind::kWindow;
  }
  const std::int32_t ratio = compress_ratios[static_cast<std::size_t>(layer)];
  return ratio == 0   ? AttentionKind::kWindow
         : ratio == 4 ? AttentionKind::kCsa
                      : AttentionKind::kHca;
}

std::int32_t ModelConfig::n_layers_with(std::int32_t ratio) const {
  return static_cast<std::int32_t>(
      std::count(compress_ratios.begin(), compress_ratios.end(), ratio));
}

Result<ModelConfig> parse_config(std::string_view text) {
  TANDEM_ASSIGN(const json::Value root, json::parse(text));
  if (!root.is_object()) {
    return invalid_argument("is {}, expected an object", json::type_name(root));
  }
  std::vector<std::string> problems;
  ConfigReader reader(root, "", problems);
  ModelConfig config;
  read_fixed(reader);
  read_sizes(reader, config);
  read_ratios(reader, config, problems);
  read_rope(root, reader, config, problems);
  read_quantisation(root, reader, problems);
  read_dspark(reader, config);
  if (problems.empty()) {
    check_sizes(config, problems);
  }
  if (!problems.empty()) {
    return invalid_argument("{}", fmt::join(problems, "\n"));
  }
  return config;
}

Status resolve_draft(ModelConfig& config, std::span<const std::string> tensor_names) {
  bool mtp = false;
  bool dspark = false;
  std::int32_t n_stages = 0;
  for (const std::string& name : tensor_names) {
    mtp |= name == "mtp.0.e_proj.weight";
    dspark |= name == "mtp.0.main_proj.weight";
    n_stages = std::max(n_stages, draft_stage(name) + 1);
  }
  config.draft = DraftKind::kNone;
  config.n_draft_layers = 0;
  if (mtp && dspark) {
    return invalid_argument(
        "both mtp.0.e_proj.weight (preview) and mtp.0.main_proj.weight (DSpark) "
        "are there, expected one of them");
  }
  if (!mtp && !dspark) {
    if (n_stages > 0) {
      return invalid_argument(
          "tensors of {} mtp.* stages are there, but neither "
          "mtp.0.e_proj.weight (preview) nor mtp.0.main_proj.weight (DSpark)",
          n_stages);
    }
    return ok_status();
  }
  if (dspark && (config.dspark_block_size == 0 || config.dspark_target_layers.empty())) {
    return invalid_argument(
        "mtp.0.main_proj.weight makes this a DSpark checkpoint, but config.json "
        "lacks the dspark_* keys");
  }
  if (mtp && config.dspark_block_size != 0) {
    return invalid_argument(
        "config.json has dspark_* keys, but the draft block is an MTP block "
        "(mtp.0.e_proj.weight)");
  }
  config.draft = mtp ? DraftKind::kMtp : DraftKind::kDspark;
  config.n_draft_layers = mtp ? 1 : n_stages;
  return ok_status();
}

Status check_world(const ModelConfig& config, int world) {
  std::vector<std::string> problems;
  const auto divides = [&](std::string_view key, std::int64_t value, std::int64_t unit) {
    if (value % (unit * world) != 0) {
      problems.push_back(
          fmt::format("{} is {}, expected a multiple of {}", key, value, unit * world));
    }
  };
  if (world < 1) {
    return invalid_argument("{} ranks, expected at least 1", world);
  }
  divides("vocab_size", config.vocab_size, 1);
  divides("num_attention_heads", config.n_heads, 1);
  divides("o_groups", config.o_groups, 1);
  divides("moe_intermediate_size", config.moe_inter, kBlock);
  if (problems.empty()) {
    return ok_status();
  }
  return invalid_argument("{} ranks cannot share this model: {}", world, fmt::join(problems, "; "));
}

}  // namespace tandem::v4
