#include "compute/cuda/cuda_kernels.h"

#include <fmt/format.h>

#include <utility>

#include "compute/cuda/ops.h"
#include "foundation/base/check.h"

namespace tandem::cuda {
namespace {

class CudaKernels final : public kernels::Kernels {
 public:
  CudaKernels(void* stream, kernels::Numerics numerics, device::Buffer scratch)
      : numerics_(numerics), scratch_(std::move(scratch)) {
    context_.stream = stream;
    context_.native = numerics == kernels::Numerics::kNative;
    context_.scratch = scratch_.as<std::uint8_t>();
    context_.scratch_bytes = scratch_.bytes();
  }

  kernels::Numerics numerics() const override { return numerics_; }

  void embed(const kernels::EmbedArgs& args) override {
    run("embed", cuda::embed, args, args.rows.n_tokens);
  }

  void hc_pre(const kernels::HcPreArgs& args) override {
    run("hc_pre", cuda::hc_pre, args, args.n_tokens);
  }

  void hc_post(const kernels::HcPostArgs& args) override {
    run("hc_post", cuda::hc_post, args, args.n_tokens);
  }

  void hc_head(const kernels::HcHeadArgs& args) override {
    run("hc_head", cuda::hc_head, args, args.n_rows);
  }

  void rms_norm(const kernels::RmsNormArgs& args) override {
    run("rms_norm", cuda::rms_norm, args, args.n_rows);
  }

  void linear(const kernels::LinearArgs& args) override {
    run("linear", cuda::linear, args, args.n_rows);
  }

  void query(const kernels::QueryArgs& args) override {
    run("query", cuda::query, args, args.rows.n_tokens);
  }

  void kv(const kernels::KvArgs& args) override { run("kv", cuda::kv, args, args.rows.n_tokens); }

  void window_append(const kernels::WindowAppendArgs& args) override {
    run("window_append", cuda::window_append, args, args.rows.n_tokens);
  }

  void compress(const kernels::CompressArgs& args) override {
    run("compress", cuda::compress, args, args.rows.n_tokens);
  }

  void index_query(const kernels::IndexQueryArgs& args) override {
    run("index_query", cuda::index_query, args, args.rows.n_tokens);
  }

  void index_select(const kernels::IndexSelectArgs& args) override {
    run("index_select", cuda::index_select, args, args.rows.n_tokens);
  }

  void attention(const kernels::AttentionArgs& args) override {
    run("attention", cuda::attention, args, args.rows.n_tokens);
  }

  void route(const kernels::RouteArgs& args) override {
    run("route", cuda::route, args, args.rows.n_tokens);
  }

  void experts(const kernels::ExpertsArgs& args) override {
    run("experts", cuda::experts, args, args.n_tokens);
  }

  void stream_mean(const kernels::StreamMeanArgs& args) override {
    run("stream_mean", cuda::stream_mean, args, args.n_tokens);
  }

  void stream_add(const kernels::StreamAddArgs& args) override {
    run("stream_add", cuda::stream_add, args, args.n_tokens);
  }

 private:
  // A launch that the driver refuses is a fault of this program: the step is lost and so is the
  // rank.
  template <typename Args>
  void run(const char* name, void (*op)(const Context&, const Args&), const Args& args,
           std::int64_t n_rows) {
    if (n_rows == 0) {
      return;
    }
    op(context_, args);
    const char* error = last_launch_error();
    TANDEM_CHECK(error == nullptr, fmt::format("{} of {} rows: {}", name, n_rows, error));
  }

  kernels::Numerics numerics_;
  device::Buffer scratch_;
  Context context_;
};

}  // namespace

Result<std::unique_ptr<kernels::Kernels>> make_cuda_kernels(device::Device& device, void* stream,
                                                            kernels::Numerics numerics,
                                                            std::int64_t scratch_bytes) {
  TANDEM_ASSIGN(device::Buffer scratch, device.allocate(scratch_bytes, "kernel scratch"));
  return std::unique_ptr<kernels::Kernels>(
      std::make_unique<CudaKernels>(stream, numerics, std::move(scratch)));
}

}  // namespace tandem::cuda
