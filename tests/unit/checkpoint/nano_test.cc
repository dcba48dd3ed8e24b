// The bundled checkpoint, written by other code, opens and loads whole and in halves.
#include <gtest/gtest.h>

#include "model/v4/open_model.h"

namespace tandem::v4 {
namespace {

const char* const kNano = TANDEM_SOURCE_DIR "/models/nano";

TEST(Nano, OpensAndLoads) {
  const Result<OpenedModel> model = open_model(kNano, 2);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->config.draft, DraftKind::kMtp);
  const auto device = device::make_cpu_device();
  checkpoint::LoadOptions options;
  int calls = 0;
  options.progress = [&](const checkpoint::LoadProgress& progress) {
    ++calls;
    EXPECT_LE(progress.done_bytes, progress.total_bytes);
  };
  const Result<checkpoint::WeightStore> store = load_weights(*model, *device, options);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_GT(calls, 10);
  const tensor::WeightMatrix wq_b = store->matrix("layers.2.attn.wq_b");
  EXPECT_EQ(wq_b.format, tensor::WeightFormat::kFp8);
  EXPECT_EQ(wq_b.rows, model->config.n_heads * 512);
  EXPECT_EQ(store->stack("layers.2.ffn.experts", "w2").count, model->config.n_experts);
}

}  // namespace
}  // namespace tandem::v4
