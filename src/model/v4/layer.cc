#include "model/v4/layer.h"

namespace tandem::v4 {
namespace {

using kernels::LinearKind;
using tensor::kHeadDim;
using tensor::kIndexDim;

constexpr std::int32_t kOverlapRatio = 4;

// Streams -> sub-layer input in work.x, and what hc_exit needs.
void hc_enter(const Pass& pass, const HcWeights& site, const std::uint16_t* norm,
              const float* streams) {
  const Dims& d = *pass.dims;
  kernels::HcPreArgs args;
  args.n_tokens = pass.rows.n_tokens;
  args.hidden = d.hidden;
  args.hc_mult = d.hc_mult;
  args.sinkhorn_iters = d.sinkhorn_iters;
  args.norm_eps = d.norm_eps;
  args.hc_eps = d.hc_eps;
  args.streams = streams;
  args.fn = site.fn;
  args.base = site.base;
  args.scale = site.scale;
  args.norm = norm;
  args.out = pass.work->x.as<float>();
  args.post = pass.work->post.as<float>();
  args.comb = pass.work->comb.as<float>();
  pass.kernels->hc_pre(args);
}

// Sums work.partial over the ranks and adds it to the streams.
void hc_exit(const Pass& pass, float* streams) {
  const Dims& d = *pass.dims;
  const auto n_values =
      static_cast<std::size_t>(pass.rows.n_tokens) * static_cast<std::size_t>(d.hidden);
  pass.communicator->all_reduce_sum({pass.work->partial.as<float>(), n_values});
  kernels::HcPostArgs args;
  args.n_tokens = pass.rows.n_tokens;
  args.hidden = d.hidden;
  args.hc_mult = d.hc_mult;
  args.sublayer = pass.work->partial.as<float>();
  args.post = pass.work->post.as<float>();
  args.comb = pass.work->comb.as<float>();
  args.streams = streams;
  pass.kernels->hc_post(args);
}

// Queries in work.q and this step's KV rows in work.kv. SOURCE: model.md 2.3.
void project_query_and_kv(const Pass& pass, const AttentionWeights& attn,
                          const LayerCaches& caches) {
  const Dims& d = *pass.dims;
  const Workspace& work = *pass.work;
  const std::int64_t n = pass.rows.n_tokens;
  linear(*pass.kernels, n, work.x.as<float>(), attn.wq_a, LinearKind::kQuantised,
         work.qr.as<float>());
  kernels::RmsNormArgs norm;
  norm.n_rows = n;
  norm.dim = d.q_lora;
  norm.eps = d.norm_eps;
  norm.x = work.qr.as<float>();
  norm.weight = attn.q_norm;
  norm.out = work.qr.as<float>();
  pass.kernels->rms_norm(norm);
  linear(*pass.kernels, n, work.qr.as<float>(), attn.wq_b, LinearKind::kQuantised,
         work.q.as<float>());
  kernels::QueryArgs query;
  query.rows = pass.rows;
  query.n_heads = d.n_heads;
  query.eps = d.norm_eps;
  query.inv_freq = caches.inv_freq;
  query.q = work.q.as<float>();
  pass.kernels->query(query);
  linear(*pass.kernels, n, work.x.as<float>(), attn.wkv, LinearKind::kQuantised,
         work.kv.as<float>());
  kernels::KvArgs kv;
  kv.rows = pass.rows;
  kv.eps = d.norm_eps;
  kv.norm = attn.kv_norm;
  kv.inv_freq = caches.inv_freq;
  kv.kv = work.kv.as<float>();
  pass.kernels->kv(kv);
}

// Emits the compressed rows (or index keys) that this step completes. SOURCE: model.md 2.6.
void compress(const Pass& pass, const CompressorWeights& compressor, const LayerCaches& caches,
              kernels::CompressedKind kind) {
  const Workspace& work = *pass.work;
  const bool main = kind == kernels::CompressedKind::kMain;
  const std::int64_t n = pass.rows.n_tokens;
  linear(*pass.kernels, n, work.x.as<float>(), compressor.wkv, LinearKind::kF32,
         work.ckv.as<float>());
  linear(*pass.kernels, n, work.x.as<float>(), compressor.wgate, LinearKind::kF32,
         work.cscore.as<float>());
  kernels::CompressArgs args;
  args.rows = pass.rows;
  args.kind = kind;
  args.ratio = caches.ratio;
  args.width = (caches.ratio == kOverlapRatio ? 2 : 1) * (main ? kHeadDim : kIndexDim);
  args.eps = pass.dims->norm_eps;
  args.kv = work.ckv.as<float>();
  args.score = work.cscore.as<float>();
  args.ape = compressor.ape;
  args.norm = compressor.norm;
  args.inv_freq = caches.inv_freq;
  args.state = main ? caches.state : caches.index_state;
  args.out = main ? caches.compressed : caches.index_keys;
  pass.kernels->compress(args);
}

// Which compressed rows each query attends to, in work.selected. SOURCE: model.md 2.8.
void select_rows(const Pass& pass, const IndexerWeights& indexer, const LayerCaches& caches) {
  const Dims& d = *pass.dims;
  const Workspace& work = *pass.work;
  const std::int64_t n = pass.rows.n_tokens;
  linear(*pass.kernels, n, work.qr.as<float>(), indexer.wq_b, LinearKind::kQuantised,
         work.iq.as<float>());
  linear(*pass.kernels, n, work.x.as<float>(), indexer.weights_proj, LinearKind::kBf16,
         work.iw.as<float>());
  kernels::IndexQueryArgs query;
  query.rows = pass.rows;
  query.n_heads = d.index_heads;
  query.inv_freq = caches.inv_freq;
  query.iq = work.iq.as<float>();
  pass.kernels->index_query(query);
  kernels::IndexSelectArgs select;
  select.rows = pass.rows;
  select.n_heads = d.index_heads;
  select.ratio = caches.ratio;
  select.top_k = d.index_top_k;
  select.iq = work.iq.as<float>();
  select.iw = work.iw.as<float>();
  select.keys = caches.index_keys;
  select.selected = work.selected.as<std::int32_t>();
  select.n_selected = work.n_selected.as<std::int32_t>();
  pass.kernels->index_select(select);
}

// Queries against window and compressed rows, result in work.attn_out. SOURCE: model.md 2.9.
void attend(const Pass& pass, const AttentionWeights& attn, const LayerCaches& caches) {
  const Dims& d = *pass.dims;
  const Workspace& work = *pass.work;
  kernels::AttentionArgs args;
  args.rows = pass.rows;
  args.n_heads = d.n_heads;
  args.q = work.q.as<float>();
  args.kv = work.kv.as<float>();
  args.window = caches.window;
  args.window_format = caches.window_format;
  args.ratio = caches.ratio;
  args.compressed = caches.compressed;
  if (caches.ratio == kOverlapRatio) {
    args.selected = work.selected.as<std::int32_t>();
    args.n_selected = work.n_selected.as<std::int32_t>();
    args.top_k = d.index_top_k;
  }
  args.sink = attn.attn_sink;
  args.inv_freq = caches.inv_freq;
  args.block_draft = pass.block_draft;
  args.out = work.attn_out.as<float>();
  pass.kernels->attention(args);
}

// Grouped low-rank output, this rank's part of the sum, in work.partial. SOURCE: model.md 2.10.
void project_output(const Pass& pass, const AttentionWeights& attn) {
  const Dims& d = *pass.dims;
  const Workspace& work = *pass.work;
  const std::int64_t group_width = std::int64_t{d.n_heads / d.n_groups} * kHeadDim;
  for (std::int32_t g = 0; g < d.n_groups; ++g) {
    kernels::LinearArgs args;
    args.n_rows = pass.rows.n_tokens;
    args.x = work.attn_out.as<float>() + g * group_width;
    args.x_stride = d.n_groups * group_width;
    args.w = attn.wo_a[static_cast<std::size_t>(g)];
    args.kind = LinearKind::kBf16;
    args.out = work.groups.as<float>() + std::int64_t{g} * d.o_lora;
    args.out_stride = std::int64_t{d.n_groups} * d.o_lora;
    pass.kernels->linear(args);
  }
  linear(*pass.kernels, pass.rows.n_tokens, work.groups.as<float>(), attn.wo_b,
         LinearKind::kPartial, work.partial.as<float>());
}

void attention_half(const Pass& pass, const LayerWeights& layer, const LayerCaches& caches,
                    float* streams) {
  hc_enter(pass, layer.hc_attn, layer.attn_norm, streams);
  project_query_and_kv(pass, layer.attn, caches);
  if (caches.ratio != 0) {
    compress(pass, layer.attn.compressor, caches, kernels::CompressedKind::kMain);
  }
  if (caches.ratio == kOverlapRatio) {
    compress(pass, layer.attn.indexer.compressor, caches, kernels::CompressedKind::kIndex);
    select_rows(pass, layer.attn.indexer, caches);
  }
  attend(pass, layer.attn, caches);
  if (!pass.block_draft) {
    // After attend: a long chunk overwrites ring rows that its first queries still read.
    kernels::WindowAppendArgs append;
    append.rows = pass.rows;
    append.kv = pass.work->kv.as<float>();
    append.window = caches.window;
    append.format = caches.window_format;
    pass.kernels->window_append(append);
  }
  project_output(pass, layer.attn);
  hc_exit(pass, streams);
}

// Router, routed and shared experts. SOURCE: model.md 2.11.
void expert_half(const Pass& pass, const LayerWeights& layer, float* streams) {
  const Dims& d = *pass.dims;
  const Workspace& work = *pass.work;
  const FeedForwardWeights& ffn = layer.ffn;
  hc_enter(pass, layer.hc_ffn, layer.ffn_norm, streams);
  linear(*pass.kernels, pass.rows.n_tokens, work.x.as<float>(), ffn.gate, LinearKind::kF32,
         work.router.as<float>());
  kernels::RouteArgs route;
  route.rows = pass.rows;
  route.n_experts = d.n_experts;
  route.top_k = d.expert_top_k;
  route.routed_scaling = d.routed_scaling;
  route.logits = work.router.as<float>();
  route.bias = ffn.bias;
  route.tid2eid = ffn.tid2eid;
  route.experts = work.experts.as<std::int32_t>();
  route.weights = work.weights.as<float>();
  pass.kernels->route(route);
  kernels::ExpertsArgs experts;
  experts.n_tokens = pass.rows.n_tokens;
  experts.hidden = d.hidden;
  experts.top_k = d.expert_top_k;
  experts.swiglu_limit = d.swiglu_limit;
  experts.x = work.x.as<float>();
  experts.experts = work.experts.as<std::int32_t>();
  experts.weights = work.weights.as<float>();
  experts.w1 = ffn.w1;
  experts.w3 = ffn.w3;
  experts.w2 = ffn.w2;
  experts.shared_w1 = ffn.shared_w1;
  experts.shared_w3 = ffn.shared_w3;
  experts.shared_w2 = ffn.shared_w2;
  experts.out = work.partial.as<float>();
  pass.kernels->experts(experts);
  hc_exit(pass, streams);
}

}  // namespace

void linear(kernels::Kernels& kernels, std::int64_t n_rows, const float* x,
            const tensor::WeightMatrix& w, kernels::LinearKind kind, float* out) {
  kernels::LinearArgs args;
  args.n_rows = n_rows;
  args.x = x;
  args.x_stride = w.cols;
  args.w = w;
  args.kind = kind;
  args.out = out;
  args.out_stride = w.rows;
  kernels.linear(args);
}

void run_layer(const Pass& pass, const LayerWeights& layer, const LayerCaches& caches,
               float* streams) {
  attention_half(pass, layer, caches, streams);
  expert_half(pass, layer, streams);
}

}  // namespace tandem::v4
