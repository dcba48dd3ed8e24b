// The oracle: every op of Kernels as plain loops over one row at a time, sums in double.
// Written to be read beside model.md section 2; speed does not matter here.
//
// Choices where model.md leaves one, under Numerics::kNative:
// - the per-head query norm is computed in float32 and rounded to bf16 once (T9);
// - attention probabilities stay float32, only the output is rounded to bf16 (2.9);
// - index scores stay float32 (2.8);
// - results of an expert's w2 stay float32, like LinearKind::kPartial: under tensor parallelism
//   they are partial sums, and rounding those would make two ranks differ from one (2.11).
#pragma once

#include "compute/kernels/kernels.h"

namespace tandem::cpu::reference {

using kernels::Numerics;

void embed(const kernels::EmbedArgs& args);
void hc_pre(Numerics numerics, const kernels::HcPreArgs& args);
void hc_post(Numerics numerics, const kernels::HcPostArgs& args);
void hc_head(Numerics numerics, const kernels::HcHeadArgs& args);
void rms_norm(Numerics numerics, const kernels::RmsNormArgs& args);
void linear(Numerics numerics, const kernels::LinearArgs& args);
void query(Numerics numerics, const kernels::QueryArgs& args);
void kv(Numerics numerics, const kernels::KvArgs& args);
void window_append(const kernels::WindowAppendArgs& args);
void compress(Numerics numerics, const kernels::CompressArgs& args);
void index_query(Numerics numerics, const kernels::IndexQueryArgs& args);
void index_select(Numerics numerics, const kernels::IndexSelectArgs& args);
void attention(Numerics numerics, const kernels::AttentionArgs& args);
void route(const kernels::RouteArgs& args);
void experts(Numerics numerics, const kernels::ExpertsArgs& args);
void stream_mean(Numerics numerics, const kernels::StreamMeanArgs& args);
void stream_add(Numerics numerics, const kernels::StreamAddArgs& args);

}  // namespace tandem::cpu::reference
