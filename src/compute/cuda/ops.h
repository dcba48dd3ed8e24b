// The launchers behind CudaKernels, one per op of kernels::Kernels. Everything is queued on the
// stream of the context; nothing waits, nothing allocates.
#pragma once

#include <cstdint>

#include "compute/kernels/kernels.h"

namespace tandem::cuda {

// What every op runs with. `scratch` belongs to the op in hand: ops follow each other on one
// stream.
struct Context {
  void* stream = nullptr;  // cudaStream_t
  bool native = false;
  std::uint8_t* scratch = nullptr;
  std::int64_t scratch_bytes = 0;
};

// What the driver said against the last launch; nullptr if nothing.
const char* last_launch_error();

// Adds one to a counter in shared memory, in order with the rest of the stream.
void count_mark(void* stream, std::int64_t* counter);

void embed(const Context& context, const kernels::EmbedArgs& args);
void hc_pre(const Context& context, const kernels::HcPreArgs& args);
void hc_post(const Context& context, const kernels::HcPostArgs& args);
void hc_head(const Context& context, const kernels::HcHeadArgs& args);
void rms_norm(const Context& context, const kernels::RmsNormArgs& args);
void linear(const Context& context, const kernels::LinearArgs& args);
void query(const Context& context, const kernels::QueryArgs& args);
void kv(const Context& context, const kernels::KvArgs& args);
void window_append(const Context& context, const kernels::WindowAppendArgs& args);
void compress(const Context& context, const kernels::CompressArgs& args);
void index_query(const Context& context, const kernels::IndexQueryArgs& args);
void index_select(const Context& context, const kernels::IndexSelectArgs& args);
void attention(const Context& context, const kernels::AttentionArgs& args);
void route(const Context& context, const kernels::RouteArgs& args);
void experts(const Context& context, const kernels::ExpertsArgs& args);
void stream_mean(const Context& context, const kernels::StreamMeanArgs& args);
void stream_add(const Context& context, const kernels::StreamAddArgs& args);

}  // namespace tandem::cuda
