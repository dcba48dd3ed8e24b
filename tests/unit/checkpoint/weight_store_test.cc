// Slices of two ranks make up the whole, bit for bit; stacks, types and memory are as promised.
#include "model/checkpoint/weight_store.h"

#include <gtest/gtest.h>

#include <fstream>

#include "model/v4/open_model.h"
#include "tests/unit/checkpoint/broken_checkpoint.h"

namespace tandem::v4 {
namespace {

using checkpoint::LoadOptions;
using checkpoint::MatrixStack;
using checkpoint::Split;
using checkpoint::TensorSpec;
using checkpoint::TensorView;
using checkpoint::WeightStore;
using tensor::WeightFormat;

WeightStore load(const OpenedModel& model, device::Device& device, int rank, int world) {
  LoadOptions options;
  options.rank = rank;
  options.world = world;
  Result<WeightStore> store = load_weights(model, device, options);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::move(store).value();
}

std::string bytes_of(const TensorView& view) {
  return {static_cast<const char*>(view.data), static_cast<std::size_t>(view.bytes)};
}

// Puts the parts of two ranks back together, the way TP 2 divides them.
std::string recombine(const TensorSpec& spec, const TensorView& a, const TensorView& b) {
  const std::string first = bytes_of(a);
  const std::string second = bytes_of(b);
  if (spec.split == Split::kRows) {
    return first + second;
  }
  const auto rows = static_cast<std::size_t>(spec.shape[0]);
  const std::size_t width = first.size() / rows;
  std::string whole;
  for (std::size_t row = 0; row < rows; ++row) {
    whole += first.substr(row * width, width) + second.substr(row * width, width);
  }
  return whole;
}

TEST(WeightStore, PartsOfTwoRanksMakeTheWholeBitForBit) {
  for (const DraftKind draft : {DraftKind::kMtp, DraftKind::kDspark}) {
    const OpenedModel model = open_model(test::small_checkpoint(draft), 2).value();
    const auto device = device::make_cpu_device();
    const WeightStore whole = load(model, *device, 0, 1);
    const WeightStore rank0 = load(model, *device, 0, 2);
    const WeightStore rank1 = load(model, *device, 1, 2);
    int n_split = 0;
    for (const TensorSpec& spec : model.table) {
      const std::string expected = bytes_of(whole.get(spec.name));
      if (spec.split == Split::kReplicated) {
        ASSERT_EQ(bytes_of(rank0.get(spec.name)), expected) << spec.name;
        ASSERT_EQ(bytes_of(rank1.get(spec.name)), expected) << spec.name;
        continue;
      }
      ++n_split;
      ASSERT_EQ(recombine(spec, rank0.get(spec.name), rank1.get(spec.name)), expected) << spec.name;
    }
    EXPECT_GT(n_split, 100);
  }
}

// What is loaded is what lies in the file: checked against a reader of its own.
TEST(WeightStore, HoldsTheBytesOfTheFile) {
  const OpenedModel model = open_model(test::small_checkpoint(), 1).value();
  const auto device = device::make_cpu_device();
  const WeightStore store = load(model, *device, 0, 1);
  for (const checkpoint::TensorLocation& tensor : model.files.tensors) {
    const auto& shard = model.files.shards[static_cast<std::size_t>(tensor.shard)];
    std::ifstream file(shard.path, std::ios::binary);
    std::string bytes(tensor.bytes, '\0');
    file.seekg(static_cast<std::streamoff>(tensor.offset));
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const TensorView& view = store.get(tensor.name);
    if (tensor.dtype != tensor::DType::kI64) {
      ASSERT_EQ(bytes_of(view), bytes) << tensor.name;
      continue;
    }
    for (std::size_t i = 0; i < bytes.size() / 8; ++i) {
      std::int64_t id = 0;
      std::memcpy(&id, &bytes[8 * i], 8);
      ASSERT_EQ(store.i32(tensor.name)[i], id) << tensor.name;
    }
  }
}

TEST(WeightStore, MatricesAndStacksHaveThisRanksShape) {
  const OpenedModel model = open_model(test::small_checkpoint(), 2).value();
  const auto device = device::make_cpu_device();
  const WeightStore store = load(model, *device, 1, 2);
  EXPECT_EQ(store.rank(), 1);
  EXPECT_EQ(store.world(), 2);
  EXPECT_TRUE(store.has("layers.2.attn.indexer.wq_b.weight"));
  EXPECT_FALSE(store.has("layers.0.attn.indexer.wq_b.weight"));

  const tensor::WeightMatrix wo_b = store.matrix("layers.0.attn.wo_b");
  EXPECT_EQ(wo_b.format, WeightFormat::kFp8);
  EXPECT_EQ(wo_b.rows, 256);
  EXPECT_EQ(wo_b.cols, 128);
  EXPECT_NE(wo_b.scales, nullptr);
  EXPECT_EQ(store.matrix("head").format, WeightFormat::kBf16);
  EXPECT_EQ(store.matrix("head").rows, 256);

  const MatrixStack w2 = store.stack("layers.1.ffn.experts", "w2");
  EXPECT_EQ(w2.first.format, WeightFormat::kFp4);
  EXPECT_EQ(w2.first.rows, 256);
  EXPECT_EQ(w2.first.cols, 128);
  EXPECT_EQ(w2.count, 4);
  for (std::int64_t e = 0; e < w2.count; ++e) {
    const tensor::WeightMatrix one = store.matrix(fmt::format("layers.1.ffn.experts.{}.w2", e));
    EXPECT_EQ(one.data, static_cast<const char*>(w2.first.data) + e * w2.data_stride_bytes);
    EXPECT_EQ(one.scales, w2.first.scales + e * w2.scale_stride_bytes);
    EXPECT_EQ(w2.data_stride_bytes + w2.scale_stride_bytes, one.bytes());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(store.matrix("layers.0.attn.wkv").data);
  EXPECT_EQ(address % 256, 0U);
}

TEST(WeightStore, AllocatesWhatThePlanSays) {
  const OpenedModel model = open_model(test::small_checkpoint(), 2).value();
  const auto device = device::make_cpu_device();
  const WeightStore store = load(model, *device, 1, 2);
  const auto plan = checkpoint::plan_weights(model.table, 1, 2).value();
  const auto memory = device->memory();
  ASSERT_EQ(plan.size(), memory.size());
  std::int64_t total = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(plan[i].label, memory[i].label);
    EXPECT_EQ(plan[i].bytes, memory[i].bytes);
    total += plan[i].bytes;
  }
  EXPECT_EQ(store.bytes(), total);
}

TEST(WeightStore, RefusesARankThatDoesNotExist) {
  const OpenedModel model = open_model(test::small_checkpoint(), 2).value();
  const auto device = device::make_cpu_device();
  LoadOptions options;
  options.rank = 2;
  options.world = 2;
  EXPECT_EQ(load_weights(model, *device, options).status().code(), StatusCode::kInvalidArgument);
}

// A file that shrinks after its header was read, as when a download replaces it.
TEST(WeightStore, ReportsAFileThatShrank) {
  test::BrokenCheckpoint broken;
  const OpenedModel model = open_model(broken.path(), 1).value();
  broken.edit("model-00004-of-00007.safetensors",
              [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  const auto device = device::make_cpu_device();
  const Result<WeightStore> store = load_weights(model, *device, {});
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.status().message().find("truncated: model-00004-of-00007.safetensors"),
            std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
std::int64_t status_kilobytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key, 0) == 0) {
      return std::stoll(line.substr(key.size() + 1));
    }
  }
  return 0;
}

// Peak memory of a load is at most 1.1 times the rank's bytes.
TEST(WeightStore, NeedsLittleMemoryBesideTheWeights) {
  test::TempFolder folder;
  SynthOptions options;
  options.config = tiny_config(DraftKind::kNone, 40);
  ASSERT_TRUE(write_synthetic_model(folder.path() / "m", options).ok());
  const OpenedModel model = open_model(folder.path() / "m", 2).value();
  const auto device = device::make_cpu_device();
  const std::int64_t before = status_kilobytes("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // resets VmHWM
  const WeightStore store = load(model, *device, 0, 2);
  const std::int64_t peak = status_kilobytes("VmHWM:") - before;
  ASSERT_GT(store.bytes(), 40 << 20);
  EXPECT_LT(static_cast<double>(peak) * 1024, 1.1 * static_cast<double>(store.bytes()));
}
#endif

}  // namespace
}  // namespace tandem::v4
