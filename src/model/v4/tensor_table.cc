#include "model/v4/tensor_table.h"

#include "compute/tensor/row_format.h"

namespace tandem::v4 {
namespace {

using checkpoint::Split;
using checkpoint::TensorGroup;
using checkpoint::TensorSpec;
using tensor::DType;

constexpr std::int64_t kBlock = 128;       // rows and columns of an FP8 scale
constexpr std::int64_t kGroupValues = 32;  // columns of an FP4 scale
constexpr std::int64_t kHead = tensor::kHeadDim;
constexpr std::int64_t kIndex = tensor::kIndexDim;

// How one matrix is divided; unit in rows or columns of the logical matrix.
struct SplitRule {
  Split split = Split::kReplicated;
  std::int64_t unit = 1;
};

class TableBuilder {
 public:
  explicit TableBuilder(const ModelConfig& config) : config_(config) {}

  std::vector<TensorSpec> build() {
    plain("embed.weight", DType::kBf16, {config_.vocab_size, config_.hidden},
          TensorGroup::kEmbedding);
    for (std::int32_t layer = 0; layer < config_.n_layers; ++layer) {
      layer_ = layer;
      block("layers." + std::to_string(layer) + ".");
    }
    layer_ = -1;
    plain("head.weight", DType::kBf16, {config_.vocab_size, config_.hidden}, TensorGroup::kHead,
          {Split::kRows, 1});
    plain("norm.weight", DType::kBf16, {config_.hidden}, TensorGroup::kNorm);
    hc_head("", TensorGroup::kHyperConnection);
    for (std::int32_t stage = 0; stage < config_.n_draft_layers; ++stage) {
      layer_ = config_.n_layers + stage;
      const std::string prefix = "mtp." + std::to_string(stage) + ".";
      block(prefix);
      draft(prefix, stage);
    }
    return std::move(table_);
  }

 private:
  TensorSpec& plain(std::string name, DType dtype, std::vector<std::int64_t> shape,
                    TensorGroup group, SplitRule rule = {}) {
    TensorSpec spec;
    spec.name = std::move(name);
    spec.dtype = dtype;
    spec.shape = std::move(shape);
    spec.split = rule.split;
    spec.split_unit = rule.unit;
    spec.layer = layer_;
    spec.group = group;
    return table_.emplace_back(std::move(spec));
  }

  // rule.unit is a multiple of kBlock.
  void fp8(const std::string& name, std::int64_t rows, std::int64_t cols, TensorGroup group,
           SplitRule rule = {}) {
    plain(name + ".weight", DType::kF8E4M3, {rows, cols}, group, rule);
    plain(name + ".scale", DType::kF8E8M0,
          {(rows + kBlock - 1) / kBlock, (cols + kBlock - 1) / kBlock}, group,
          {rule.split, rule.split == Split::kReplicated ? 1 : rule.unit / kBlock});
  }

  void expert_matrix(const std::string& experts, std::int32_t expert, const std::string& kind,
                     std::int64_t rows, std::int64_t cols, Split split) {
    const std::string base = experts + "." + std::to_string(expert) + "." + kind;
    // The intermediate dim is cut in whole activation blocks.
    const bool columns = split == Split::kColumns;
    TensorSpec& weight = plain(base + ".weight", DType::kI8, {rows, cols / 2},
                               TensorGroup::kExpertWeights, {split, columns ? kBlock / 2 : kBlock});
    weight.stack = experts + "." + kind + ".weight";
    weight.stack_index = expert;
    TensorSpec& scale =
        plain(base + ".scale", DType::kF8E8M0, {rows, cols / kGroupValues},
              TensorGroup::kExpertScales, {split, columns ? kBlock / kGroupValues : kBlock});
    scale.stack = experts + "." + kind + ".scale";
    scale.stack_index = expert;
  }

  void hc_site(const std::string& name, std::int64_t mixes, std::int64_t scales,
               TensorGroup group) {
    plain(name + "_fn", DType::kF32, {mixes, config_.hc_width()}, group);
    plain(name + "_base", DType::kF32, {mixes}, group);
    plain(name + "_scale", DType::kF32, {scales}, group);
  }

  void hc_head(const std::string& prefix, TensorGroup group) {
    hc_site(prefix + "hc_head", config_.hc_mult, 1, group);
  }

  // d: 512 for the main compressor, 128 for the indexer's. SOURCE: model.md 2.6.
  void compressor(const std::string& name, std::int64_t ratio, std::int64_t d, TensorGroup group) {
    const std::int64_t width = ratio == 4 ? 2 * d : d;
    plain(name + ".ape", DType::kF32, {ratio, width}, group);
    plain(name + ".wkv.weight", DType::kBf16, {width, config_.hidden}, group);
    plain(name + ".wgate.weight", DType::kBf16, {width, config_.hidden}, group);
    plain(name + ".norm.weight", DType::kBf16, {d}, group);
  }

  void attention(const std::string& name) {
    constexpr TensorGroup kGroup = TensorGroup::kAttention;
    const std::int64_t heads_width = config_.n_heads * kHead;
    const std::int64_t out_width = std::int64_t{config_.o_groups} * config_.o_lora;
    plain(name + "attn_sink", DType::kF32, {config_.n_heads}, kGroup, {Split::kRows, 1});
    fp8(name + "wq_a", config_.q_lora, config_.hidden, kGroup);
    plain(name + "q_norm.weight", DType::kBf16, {config_.q_lora}, kGroup);
    fp8(name + "wq_b", heads_width, config_.q_lora, kGroup, {Split::kRows, kHead});
    fp8(name + "wkv", kHead, config_.hidden, kGroup);
    plain(name + "kv_norm.weight", DType::kBf16, {kHead}, kGroup);
    fp8(name + "wo_a", out_width, heads_width / config_.o_groups, kGroup,
        {Split::kRows, config_.o_lora});
    fp8(name + "wo_b", config_.hidden, out_width, kGroup, {Split::kColumns, config_.o_lora});
    const AttentionKind kind = config_.attention_kind(layer_);
    if (kind == AttentionKind::kWindow) {
      return;
    }
    compressor(name + "compressor", kind == AttentionKind::kCsa ? 4 : 128, kHead,
               TensorGroup::kCompressor);
    if (kind == AttentionKind::kCsa) {
      fp8(name + "indexer.wq_b", config_.index_heads * kIndex, config_.q_lora,
          TensorGroup::kIndexer);
      plain(name + "indexer.weights_proj.weight", DType::kBf16,
            {config_.index_heads, config_.hidden}, TensorGroup::kIndexer);
      compressor(name + "indexer.compressor", 4, kIndex, TensorGroup::kIndexer);
    }
  }

  void feed_forward(const std::string& name) {
    plain(name + "gate.weight", DType::kBf16, {config_.n_experts, config_.hidden},
          TensorGroup::kRouter);
    if (config_.is_hash_layer(layer_)) {
      plain(name + "gate.tid2eid", DType::kI64, {config_.vocab_size, config_.expert_top_k},
            TensorGroup::kTokenExperts)
          .integer_bound = config_.n_experts;
    } else {
      plain(name + "gate.bias", DType::kF32, {config_.n_experts}, TensorGroup::kRouter);
    }
    const std::int64_t inter = config_.moe_inter;
    const std::int64_t hidden = config_.hidden;
    for (std::int32_t expert = 0; expert < config_.n_experts; ++expert) {
      expert_matrix(name + "experts", expert, "w1", inter, hidden, Split::kRows);
      expert_matrix(name + "experts", expert, "w2", hidden, inter, Split::kColumns);
      expert_matrix(name + "experts", expert, "w3", inter, hidden, Split::kRows);
    }
    constexpr TensorGroup kShared = TensorGroup::kSharedExpert;
    fp8(name + "shared_experts.w1", inter, hidden, kShared, {Split::kRows, kBlock});
    fp8(name + "shared_experts.w2", hidden, inter, kShared, {Split::kColumns, kBlock});
    fp8(name + "shared_experts.w3", inter, hidden, kShared, {Split::kRows, kBlock});
  }

  void block(const std::string& prefix) {
    plain(prefix + "attn_norm.weight", DType::kBf16, {config_.hidden}, TensorGroup::kNorm);
    plain(prefix + "ffn_norm.weight", DType::kBf16, {config_.hidden}, TensorGroup::kNorm);
    hc_site(prefix + "hc_attn", config_.hc_mixes(), 3, TensorGroup::kHyperConnection);
    hc_site(prefix + "hc_ffn", config_.hc_mixes(), 3, TensorGroup::kHyperConnection);
    attention(prefix + "attn.");
    feed_forward(prefix + "ffn.");
  }

  // What draft blocks have besides a block. SOURCE: model.md 3.2, "MTP/draft extras".
  void draft(const std::string& prefix, std::int32_t stage) {
    constexpr TensorGroup kGroup = TensorGroup::kDraft;
    const std::int64_t hidden = config_.hidden;
    if (config_.draft == DraftKind::kMtp) {
      fp8(prefix + "e_proj", hidden, hidden, kGroup);
      fp8(prefix + "h_proj", hidden, hidden, kGroup);
      plain(prefix + "enorm.weight", DType::kBf16, {hidden}, kGroup);
      plain(prefix + "hnorm.weight", DType::kBf16, {hidden}, kGroup);
    }
    if (config_.draft == DraftKind::kDspark && stage == 0) {
      const auto n_taps = static_cast<std::int64_t>(config_.dspark_target_layers.size());
      fp8(prefix + "main_proj", hidden, n_taps * hidden, kGroup);
      plain(prefix + "main_norm.weight", DType::kBf16, {hidden}, kGroup);
    }
    if (stage != config_.n_draft_layers - 1) {
      return;
    }
    plain(prefix + "norm.weight", DType::kBf16, {hidden}, kGroup);
    hc_head(prefix, kGroup);
    if (config_.draft == DraftKind::kDspark) {
      const std::int64_t rank = config_.dspark_markov_rank;
      plain(prefix + "markov_head.markov_w1.weight", DType::kBf16, {config_.vocab_size, rank},
            kGroup);
      plain(prefix + "markov_head.markov_w2.weight", DType::kBf16, {config_.vocab_size, rank},
            kGroup, {Split::kRows, 1});
      plain(prefix + "confidence_head.proj.weight", DType::kBf16, {1, hidden + rank}, kGroup);
    }
  }

  const ModelConfig& config_;
  std::int32_t layer_ = -1;
  std::vector<TensorSpec> table_;
};

}  // namespace

std::vector<TensorSpec> make_tensor_table(const ModelConfig& config) {
  return TableBuilder(config).build();
}

}  // namespace tandem::v4
