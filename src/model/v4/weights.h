// ModelWeights: typed views of one rank's weights under the checkpoint's own words.
// SOURCE: model.md 3.2 (names, shapes), 3.5 (what each rank holds).
#pragma once

#include <cstdint>
#include <vector>

#include "compute/kernels/kernels.h"
#include "compute/tensor/weight_matrix.h"

namespace tandem::v4 {

// One hyper-connection site: fn [24, hc_mult * hidden], base [24], scale [3]; the head's is
// [hc_mult, hc_mult * hidden], [hc_mult], [1].
struct HcWeights {
  const float* fn = nullptr;
  const float* base = nullptr;
  const float* scale = nullptr;
};

struct CompressorWeights {
  tensor::WeightMatrix wkv;             // [width, hidden] bf16
  tensor::WeightMatrix wgate;           // [width, hidden] bf16
  const float* ape = nullptr;           // [ratio, width]
  const std::uint16_t* norm = nullptr;  // [d] bf16
};

struct IndexerWeights {
  tensor::WeightMatrix wq_b;          // [index_heads * 128, q_lora]
  tensor::WeightMatrix weights_proj;  // [index_heads, hidden] bf16
  CompressorWeights compressor;
};

struct AttentionWeights {
  tensor::WeightMatrix wq_a;               // [q_lora, hidden]
  const std::uint16_t* q_norm = nullptr;   // [q_lora] bf16
  tensor::WeightMatrix wq_b;               // [n_heads * 512, q_lora], this rank's heads
  tensor::WeightMatrix wkv;                // [512, hidden]
  const std::uint16_t* kv_norm = nullptr;  // [512] bf16
  std::vector<tensor::WeightMatrix> wo_a;  // one [o_lora, heads_per_group * 512] per group here
  tensor::WeightMatrix wo_b;               // [hidden, n_groups * o_lora], this rank's columns
  const float* attn_sink = nullptr;        // [n_heads], this rank's heads
  CompressorWeights compressor;            // ratio 4 and 128
  IndexerWeights indexer;                  // ratio 4
};

struct FeedForwardWeights {
  tensor::WeightMatrix gate;              // [n_experts, hidden] bf16
  const float* bias = nullptr;            // [n_experts]; nullptr in hash layers
  const std::int32_t* tid2eid = nullptr;  // [vocab, top_k]; nullptr in scored layers
  kernels::ExpertStack w1, w3, w2;        // this rank's part of the intermediate dim
  tensor::WeightMatrix shared_w1, shared_w3, shared_w2;
};

struct LayerWeights {
  const std::uint16_t* attn_norm = nullptr;  // [hidden] bf16
  const std::uint16_t* ffn_norm = nullptr;
  HcWeights hc_attn;
  HcWeights hc_ffn;
  AttentionWeights attn;
  FeedForwardWeights ffn;
};

// Collapse of the streams and the norm before the vocabulary matrix.
struct HeadWeights {
  HcWeights hc_head;
  const std::uint16_t* norm = nullptr;  // [hidden] bf16
};

// Input side of the MTP block. SOURCE: model.md 2.14.
struct MtpWeights {
  tensor::WeightMatrix e_proj;  // [hidden, hidden]
  tensor::WeightMatrix h_proj;
  const std::uint16_t* enorm = nullptr;  // [hidden] bf16
  const std::uint16_t* hnorm = nullptr;
};

// What DSpark has besides its three blocks. SOURCE: model.md 2.15.
struct DsparkWeights {
  tensor::WeightMatrix main_proj;            // [hidden, n_taps * hidden]
  const std::uint16_t* main_norm = nullptr;  // [hidden] bf16
  tensor::WeightMatrix markov_w1;            // [vocab, markov_rank] bf16, whole on every rank
  tensor::WeightMatrix markov_w2;            // [vocab / tp, markov_rank] bf16
  tensor::WeightMatrix confidence;           // [1, hidden + markov_rank] bf16
};

struct ModelWeights {
  tensor::WeightMatrix embed;  // [vocab, hidden] bf16, whole on every rank
  tensor::WeightMatrix head;   // [vocab / tp, hidden] bf16
  std::vector<LayerWeights> layers;
  HeadWeights head_in;
  std::vector<LayerWeights> draft_layers;  // mtp.0, or mtp.0 .. mtp.2
  HeadWeights draft_head_in;
  MtpWeights mtp;
  DsparkWeights dspark;
};

}  // namespace tandem::v4
