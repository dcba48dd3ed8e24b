#include "compute/cpu/cpu_kernels.h"
#include "compute/cpu/fast/fast_ops.h"

namespace tandem::cpu {
namespace {

class FastKernels final : public kernels::Kernels {
 public:
  FastKernels(kernels::Numerics numerics, int n_threads) : context_(numerics, n_threads) {}

  kernels::Numerics numerics() const override { return context_.numerics; }

  void embed(const kernels::EmbedArgs& args) override { fast::embed(context_, args); }

  void hc_pre(const kernels::HcPreArgs& args) override { fast::hc_pre(context_, args); }

  void hc_post(const kernels::HcPostArgs& args) override { fast::hc_post(context_, args); }

  void hc_head(const kernels::HcHeadArgs& args) override { fast::hc_head(context_, args); }

  void rms_norm(const kernels::RmsNormArgs& args) override { fast::rms_norm(context_, args); }

  void linear(const kernels::LinearArgs& args) override { fast::linear(context_, args); }

  void query(const kernels::QueryArgs& args) override { fast::query(context_, args); }

  void kv(const kernels::KvArgs& args) override { fast::kv(context_, args); }

  void window_append(const kernels::WindowAppendArgs& args) override {
    fast::window_append(context_, args);
  }

  void compress(const kernels::CompressArgs& args) override { fast::compress(context_, args); }

  void index_query(const kernels::IndexQueryArgs& args) override {
    fast::index_query(context_, args);
  }

  void index_select(const kernels::IndexSelectArgs& args) override {
    fast::index_select(context_, args);
  }

  void attention(const kernels::AttentionArgs& args) override { fast::attention(context_, args); }

  void route(const kernels::RouteArgs& args) override { fast::route(context_, args); }

  void experts(const kernels::ExpertsArgs& args) override { fast::experts(context_, args); }

  void stream_mean(const kernels::StreamMeanArgs& args) override {
    fast::stream_mean(context_, args);
  }

  void stream_add(const kernels::StreamAddArgs& args) override { fast::stream_add(context_, args); }

 private:
  fast::Context context_;
};

}  // namespace

std::unique_ptr<kernels::Kernels> make_fast_kernels(kernels::Numerics numerics, int n_threads) {
  return std::make_unique<FastKernels>(numerics, n_threads);
}

}  // namespace tandem::cpu
