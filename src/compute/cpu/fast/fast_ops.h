// The fast ops: the same results as compute/cpu/reference up to float32 summation, on all threads.
// The rounding choices of reference_ops.h hold here too.
//
// A row's result is bit-identical whatever rows are in the same call, however a prompt is cut into
// calls, and for any number of threads: every sum has one fixed order that depends on its own
// operands only.
#pragma once

#include "compute/cpu/fast/context.h"

namespace tandem::cpu::fast {

void embed(Context& context, const kernels::EmbedArgs& args);
void hc_pre(Context& context, const kernels::HcPreArgs& args);
void hc_post(Context& context, const kernels::HcPostArgs& args);
void hc_head(Context& context, const kernels::HcHeadArgs& args);
void rms_norm(Context& context, const kernels::RmsNormArgs& args);
void linear(Context& context, const kernels::LinearArgs& args);
void query(Context& context, const kernels::QueryArgs& args);
void kv(Context& context, const kernels::KvArgs& args);
void window_append(Context& context, const kernels::WindowAppendArgs& args);
void compress(Context& context, const kernels::CompressArgs& args);
void index_query(Context& context, const kernels::IndexQueryArgs& args);
void index_select(Context& context, const kernels::IndexSelectArgs& args);
void attention(Context& context, const kernels::AttentionArgs& args);
void route(Context& context, const kernels::RouteArgs& args);
void experts(Context& context, const kernels::ExpertsArgs& args);
void stream_mean(Context& context, const kernels::StreamMeanArgs& args);
void stream_add(Context& context, const kernels::StreamAddArgs& args);

// Segment of token row t.
const kernels::Segment& segment_of(const kernels::StepRows& rows, std::int64_t t);

}  // namespace tandem::cpu::fast
