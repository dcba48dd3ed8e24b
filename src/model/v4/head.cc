// Embedding, final collapse and the vocabulary matrix. SOURCE: model.md 2.1, 2.12, 2.16.
#include <algorithm>

#include "model/v4/model_state.h"

namespace tandem::v4 {
namespace {

// [tp_size, n_rows, local] -> [n_rows, tp_size * local].
void interleave_parts(device::Device& device, const float* gathered, std::int64_t n_rows,
                      std::int64_t local, int tp_size, float* out) {
  const std::int64_t part_bytes = local * std::int64_t{sizeof(float)};
  for (int rank = 0; rank < tp_size; ++rank) {
    device.copy_rows(out + rank * local, tp_size * part_bytes, gathered + rank * n_rows * local,
                     part_bytes, part_bytes, n_rows);
  }
}

}  // namespace

void embed_tokens(const ModelState& state, const Pass& pass, const tensor::WeightMatrix& table,
                  std::int32_t hc_mult, float* streams) {
  send_inputs(state, pass.rows);
  kernels::EmbedArgs args;
  args.rows = pass.rows;
  args.table = static_cast<const std::uint16_t*>(table.data);
  args.hidden = static_cast<std::int32_t>(table.cols);
  args.hc_mult = hc_mult;
  args.streams = streams;
  state.parts.kernels->embed(args);
}

void vocab_linear(const ModelState& state, std::int64_t n_rows, const float* x,
                  const tensor::WeightMatrix& w, float* out) {
  const Dims& d = state.dims;
  if (d.tp_size == 1) {
    linear(*state.parts.kernels, n_rows, x, w, kernels::LinearKind::kF32, out);
    return;
  }
  auto* local = state.work.local_logits.as<float>();
  auto* gathered = state.work.gathered.as<float>();
  const auto n_local = static_cast<std::size_t>(n_rows * d.vocab_local);
  linear(*state.parts.kernels, n_rows, x, w, kernels::LinearKind::kF32, local);
  state.parts.communicator->all_gather({local, n_local},
                                       {gathered, n_local * static_cast<std::size_t>(d.tp_size)});
  interleave_parts(*state.parts.device, gathered, n_rows, d.vocab_local, d.tp_size, out);
}

void choose_rows(const ModelState& state, std::span<const std::int32_t> rows) {
  std::copy(rows.begin(), rows.end(), state.work.chosen_in.as<std::int32_t>());
}

void run_head(const ModelState& state, const HeadWeights& head, const float* streams,
              std::int64_t n_rows, float* collapsed, float* logits) {
  const Dims& d = state.dims;
  const std::int64_t chosen_bytes = n_rows * std::int64_t{sizeof(std::int32_t)};
  state.parts.device->copy_rows(state.work.chosen.data(), chosen_bytes, state.work.chosen_in.data(),
                                chosen_bytes, chosen_bytes, 1);
  kernels::HcHeadArgs args;
  args.n_rows = static_cast<std::int32_t>(n_rows);
  args.hidden = d.hidden;
  args.hc_mult = d.hc_mult;
  args.norm_eps = d.norm_eps;
  args.hc_eps = d.hc_eps;
  args.streams = streams;
  args.rows = state.work.chosen.as<std::int32_t>();
  args.fn = head.hc_head.fn;
  args.base = head.hc_head.base;
  args.scale = head.hc_head.scale;
  args.norm = head.norm;
  args.collapsed = collapsed;
  args.out = state.work.head_in.as<float>();
  state.parts.kernels->hc_head(args);
  vocab_linear(state, args.n_rows, args.out, state.weights.head, logits);
}

void hidden_norm(const ModelState& state, std::int64_t n_rows, const float* x,
                 const std::uint16_t* weight, float* out) {
  kernels::RmsNormArgs args;
  args.n_rows = n_rows;
  args.dim = state.dims.hidden;
  args.eps = state.dims.norm_eps;
  args.x = x;
  args.weight = weight;
  args.out = out;
  state.parts.kernels->rms_norm(args);
}

}  // namespace tandem::v4
