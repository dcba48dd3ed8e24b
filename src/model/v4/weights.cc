#include "model/v4/weights.h"

#include <fmt/format.h>

#include <string>

#include "foundation/base/check.h"
#include "model/checkpoint/weight_store.h"
#include "model/v4/setup.h"

namespace tandem::v4 {
namespace {

using checkpoint::WeightStore;

HcWeights take_site(const WeightStore& store, const std::string& prefix) {
  return {store.f32(prefix + "_fn"), store.f32(prefix + "_base"), store.f32(prefix + "_scale")};
}

CompressorWeights take_compressor(const WeightStore& store, const std::string& prefix) {
  CompressorWeights weights;
  weights.wkv = store.matrix(prefix + ".wkv");
  weights.wgate = store.matrix(prefix + ".wgate");
  weights.ape = store.f32(prefix + ".ape");
  weights.norm = store.bf16(prefix + ".norm.weight");
  return weights;
}

// Rows of group g of a [n_groups * o_lora, cols] matrix. Groups are whole scale blocks.
tensor::WeightMatrix group_rows(const tensor::WeightMatrix& w, std::int64_t o_lora,
                                std::int64_t g) {
  constexpr std::int64_t kBlock = 128;
  TANDEM_CHECK(w.format == tensor::WeightFormat::kFp8 && o_lora % kBlock == 0,
               fmt::format("wo_a with o_lora {} cuts a scale block", o_lora));
  tensor::WeightMatrix part = w;
  part.rows = o_lora;
  part.data = static_cast<const std::uint8_t*>(w.data) + g * o_lora * w.cols;
  part.scales = w.scales + g * (o_lora / kBlock) * ((w.cols + kBlock - 1) / kBlock);
  return part;
}

AttentionWeights take_attention(const ModelConfig& config, const WeightStore& store,
                                const std::string& prefix, std::int32_t ratio) {
  AttentionWeights attn;
  attn.wq_a = store.matrix(prefix + "wq_a");
  attn.q_norm = store.bf16(prefix + "q_norm.weight");
  attn.wq_b = store.matrix(prefix + "wq_b");
  attn.wkv = store.matrix(prefix + "wkv");
  attn.kv_norm = store.bf16(prefix + "kv_norm.weight");
  const tensor::WeightMatrix wo_a = store.matrix(prefix + "wo_a");
  for (std::int64_t g = 0; g < wo_a.rows / config.o_lora; ++g) {
    attn.wo_a.push_back(group_rows(wo_a, config.o_lora, g));
  }
  attn.wo_b = store.matrix(prefix + "wo_b");
  attn.attn_sink = store.f32(prefix + "attn_sink");
  if (ratio != 0) {
    attn.compressor = take_compressor(store, prefix + "compressor");
  }
  if (ratio == 4) {
    attn.indexer.wq_b = store.matrix(prefix + "indexer.wq_b");
    attn.indexer.weights_proj = store.matrix(prefix + "indexer.weights_proj");
    attn.indexer.compressor = take_compressor(store, prefix + "indexer.compressor");
  }
  return attn;
}

kernels::ExpertStack take_stack(const WeightStore& store, const std::string& experts,
                                const char* kind) {
  const checkpoint::MatrixStack stack = store.stack(experts, kind);
  return {stack.first, stack.data_stride_bytes, stack.scale_stride_bytes};
}

FeedForwardWeights take_feed_forward(const WeightStore& store, const std::string& prefix,
                                     bool hash) {
  FeedForwardWeights ffn;
  ffn.gate = store.matrix(prefix + "gate");
  if (hash) {
    ffn.tid2eid = store.i32(prefix + "gate.tid2eid");
  } else {
    ffn.bias = store.f32(prefix + "gate.bias");
  }
  ffn.w1 = take_stack(store, prefix + "experts", "w1");
  ffn.w3 = take_stack(store, prefix + "experts", "w3");
  ffn.w2 = take_stack(store, prefix + "experts", "w2");
  ffn.shared_w1 = store.matrix(prefix + "shared_experts.w1");
  ffn.shared_w3 = store.matrix(prefix + "shared_experts.w3");
  ffn.shared_w2 = store.matrix(prefix + "shared_experts.w2");
  return ffn;
}

LayerWeights take_layer(const ModelConfig& config, const WeightStore& store,
                        const std::string& prefix, std::int32_t ratio, bool hash) {
  LayerWeights layer;
  layer.attn_norm = store.bf16(prefix + "attn_norm.weight");
  layer.ffn_norm = store.bf16(prefix + "ffn_norm.weight");
  layer.hc_attn = take_site(store, prefix + "hc_attn");
  layer.hc_ffn = take_site(store, prefix + "hc_ffn");
  layer.attn = take_attention(config, store, prefix + "attn.", ratio);
  layer.ffn = take_feed_forward(store, prefix + "ffn.", hash);
  return layer;
}

HeadWeights take_head(const WeightStore& store, const std::string& prefix) {
  return {take_site(store, prefix + "hc_head"), store.bf16(prefix + "norm.weight")};
}

void take_draft(const ModelConfig& config, const WeightStore& store, ModelWeights& weights) {
  for (std::int32_t stage = 0; stage < config.n_draft_layers; ++stage) {
    weights.draft_layers.push_back(
        take_layer(config, store, fmt::format("mtp.{}.", stage), 0, false));
  }
  const std::string last = fmt::format("mtp.{}.", config.n_draft_layers - 1);
  weights.draft_head_in = take_head(store, last);
  if (config.draft == DraftKind::kMtp) {
    weights.mtp.e_proj = store.matrix("mtp.0.e_proj");
    weights.mtp.h_proj = store.matrix("mtp.0.h_proj");
    weights.mtp.enorm = store.bf16("mtp.0.enorm.weight");
    weights.mtp.hnorm = store.bf16("mtp.0.hnorm.weight");
    return;
  }
  weights.dspark.main_proj = store.matrix("mtp.0.main_proj");
  weights.dspark.main_norm = store.bf16("mtp.0.main_norm.weight");
  weights.dspark.markov_w1 = store.matrix(last + "markov_head.markov_w1");
  weights.dspark.markov_w2 = store.matrix(last + "markov_head.markov_w2");
  weights.dspark.confidence = store.matrix(last + "confidence_head.proj");
}

}  // namespace

ModelDescription describe_model(const ModelConfig& config, int tp_rank, int tp_size) {
  ModelDescription model;
  Dims& d = model.dims;
  d.tp_rank = tp_rank;
  d.tp_size = tp_size;
  d.vocab = config.vocab_size;
  d.vocab_local = config.vocab_size / tp_size;
  d.hidden = config.hidden;
  d.hc_mult = config.hc_mult;
  d.sinkhorn_iters = config.hc_sinkhorn_iters;
  d.q_lora = config.q_lora;
  d.o_lora = config.o_lora;
  d.n_heads = config.n_heads / tp_size;
  d.n_groups = config.o_groups / tp_size;
  d.index_heads = config.index_heads;
  d.index_top_k = config.index_top_k;
  d.n_experts = config.n_experts;
  d.expert_top_k = config.expert_top_k;
  d.norm_eps = config.norm_eps;
  d.hc_eps = config.hc_eps;
  d.swiglu_limit = config.swiglu_limit;
  d.routed_scaling = config.routed_scaling;
  d.ratios = config.compress_ratios;
  if (config.draft == DraftKind::kDspark) {
    d.block_size = config.dspark_block_size;
    d.markov_rank = config.dspark_markov_rank;
    d.noise_token = config.dspark_noise_token;
    d.tap_layers = config.dspark_target_layers;
  }
  model.draft_kind = config.draft;
  model.n_draft_layers = config.n_draft_layers;
  model.plain_inv_freq = plain_inv_freq(config.rope_theta);
  model.yarn_inv_freq =
      yarn_inv_freq(config.compress_rope_theta,
                    {config.yarn.factor, static_cast<double>(config.yarn.original_max_positions),
                     config.yarn.beta_fast, config.yarn.beta_slow});
  return model;
}

ModelWeights take_weights(const ModelConfig& config, const WeightStore& store) {
  ModelWeights weights;
  weights.embed = store.matrix("embed");
  weights.head = store.matrix("head");
  weights.head_in = take_head(store, "");
  for (std::int32_t layer = 0; layer < config.n_layers; ++layer) {
    weights.layers.push_back(take_layer(config, store, fmt::format("layers.{}.", layer),
                                        config.compress_ratios[static_cast<std::size_t>(layer)],
                                        config.is_hash_layer(layer)));
  }
  if (config.draft != DraftKind::kNone) {
    take_draft(config, store, weights);
  }
  return weights;
}

}  // namespace tandem::v4
