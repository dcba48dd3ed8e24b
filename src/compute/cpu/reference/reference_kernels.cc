#include "compute/cpu/cpu_kernels.h"
#include "compute/cpu/reference/reference_ops.h"

namespace tandem::cpu {
namespace {

class ReferenceKernels final : public kernels::Kernels {
 public:
  explicit ReferenceKernels(kernels::Numerics numerics) : numerics_(numerics) {}

  kernels::Numerics numerics() const override { return numerics_; }

  void embed(const kernels::EmbedArgs& args) override { reference::embed(args); }

  void hc_pre(const kernels::HcPreArgs& args) override { reference::hc_pre(numerics_, args); }

  void hc_post(const kernels::HcPostArgs& args) override { reference::hc_post(numerics_, args); }

  void hc_head(const kernels::HcHeadArgs& args) override { reference::hc_head(numerics_, args); }

  void rms_norm(const kernels::RmsNormArgs& args) override { reference::rms_norm(numerics_, args); }

  void linear(const kernels::LinearArgs& args) override { reference::linear(numerics_, args); }

  void query(const kernels::QueryArgs& args) override { reference::query(numerics_, args); }

  void kv(const kernels::KvArgs& args) override { reference::kv(numerics_, args); }

  void window_append(const kernels::WindowAppendArgs& args) override {
    reference::window_append(args);
  }

  void compress(const kernels::CompressArgs& args) override {
    reference::compress(numerics_, args);
  }

  void index_query(const kernels::IndexQueryArgs& args) override {
    reference::index_query(numerics_, args);
  }

  void index_select(const kernels::IndexSelectArgs& args) override {
    reference::index_select(numerics_, args);
  }

  void attention(const kernels::AttentionArgs& args) override {
    reference::attention(numerics_, args);
  }

  void route(const kernels::RouteArgs& args) override { reference::route(args); }

  void experts(const kernels::ExpertsArgs& args) override { reference::experts(numerics_, args); }

  void stream_mean(const kernels::StreamMeanArgs& args) override {
    reference::stream_mean(numerics_, args);
  }

  void stream_add(const kernels::StreamAddArgs& args) override {
    reference::stream_add(numerics_, args);
  }

 private:
  kernels::Numerics numerics_;
};

}  // namespace

std::unique_ptr<kernels::Kernels> make_reference_kernels(kernels::Numerics numerics) {
  return std::make_unique<ReferenceKernels>(numerics);
}

}  // namespace tandem::cpu
