#include "bench/shard/shard_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "model/v4/tensor_table.h"

namespace tandem::bench {
namespace {

using checkpoint::TensorSpec;
using checkpoint::TensorView;
using cuda::FillKind;
using cuda::FillSpec;
using tensor::DType;

// Rank 0 of two with nobody on the other side: sums stay half sums, gathers repeat the own part.
// The network is not part of this measurement.
class HalfOfTwo final : public comm::Communicator {
 public:
  explicit HalfOfTwo(device::Device& device) : device_(device) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_reduce_sum(std::span<float>) override {}

  void all_gather(std::span<const float> in, std::span<float> out) override {
    const auto bytes = static_cast<std::int64_t>(in.size_bytes());
    for (int part = 0; part < 2; ++part) {
      device_.copy_rows(out.data() + static_cast<std::ptrdiff_t>(in.size()) * part, bytes,
                        in.data(), bytes, bytes, 1);
    }
  }

  void broadcast(std::vector<std::uint8_t>&) override {}
  void barrier() override {}
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  device::Device& device_;
};

// Sizes that keep activations near one, so that no value overflows or vanishes over the layers.
FillSpec values_of(const TensorSpec& spec, const v4::ModelConfig& config, std::uint64_t seed) {
  constexpr float kFp8Scale = 113;  // codes of e4m3 are around 100
  constexpr float kFp4Scale = 119;
  FillSpec fill;
  fill.seed = seed;
  switch (spec.dtype) {
    case DType::kF8E4M3:
      fill.kind = FillKind::kFp8;
      return fill;
    case DType::kI8:
      return fill;
    case DType::kF8E8M0:
      fill.kind = FillKind::kScale;
      fill.center = spec.stack.empty() ? kFp8Scale : kFp4Scale;
      return fill;
    case DType::kBf16:
      fill.kind = FillKind::kBf16;
      fill.center = spec.shape.size() == 1 ? 1.0F : 0.0F;
      fill.spread = spec.shape.size() == 1 ? 0.1F : 0.03F;
      return fill;
    case DType::kF32:
      fill.kind = FillKind::kF32;
      fill.spread = 0.02F;
      return fill;
    default:
      fill.kind = FillKind::kIds;
      fill.row = config.expert_top_k;
      fill.bound = config.n_experts;
      return fill;
  }
}

}  // namespace

Result<std::unique_ptr<ShardModel>> ShardModel::make(const v4::ModelConfig& config,
                                                     ShardBackend& backend,
                                                     const v4::ModelLimits& limits) {
  std::unique_ptr<ShardModel> shard(new ShardModel());
  shard->config_ = config;
  shard->communicator_ = std::make_unique<HalfOfTwo>(backend.device());
  const std::vector<TensorSpec> table = v4::make_tensor_table(config);
  std::uint64_t seed = 1;
  const auto fill = [&](const TensorSpec& spec, const TensorView& view, void* data) {
    const FillSpec values = values_of(spec, config, seed++);
    backend.fill(values, data, view.bytes / cuda::element_bytes(values.kind));
  };
  TANDEM_ASSIGN(shard->weights_,
                checkpoint::WeightStore::make(table, backend.device(), 0, 2, fill));
  shard->measure_table(table);
  v4::ModelParts parts;
  parts.device = &backend.device();
  parts.kernels = &backend.kernels();
  parts.communicator = shard->communicator_.get();
  parts.graphs = backend.graphs();
  TANDEM_ASSIGN(shard->model_, v4::V4Model::create(config, *shard->weights_, parts, limits,
                                                   tensor::RowFormat::kFp8));
  shard->fill_caches(backend);
  std::vector<PageId> pages;  // all sequences read the same rows: the traffic is the same
  const std::int64_t n_pages =
      std::min(limits.n_pages, shard->model_->kv_cache().layout().max_pages_per_slot());
  for (PageId page = 0; page < n_pages; ++page) {
    pages.push_back(page);
  }
  for (std::int32_t slot = 0; slot < limits.n_slots; ++slot) {
    shard->model_->kv_cache().set_pages(slot, 0, pages);
  }
  backend.device().synchronize();
  return shard;
}

void ShardModel::measure_table(const std::vector<TensorSpec>& table) {
  for (const TensorSpec& spec : table) {
    const TensorView& view = weights_->get(spec.name);
    if (spec.layer >= config_.n_layers || spec.name == "embed.weight") {
      continue;  // draft stages have their own measurement; one row of the embedding is nothing
    }
    double elements = 0;
    if (view.shape.size() == 2 && spec.dtype != DType::kF8E8M0) {
      elements = static_cast<double>(view.bytes) /
                 static_cast<double>(tensor::dtype_bytes(view.dtype)) *
                 (spec.dtype == DType::kI8 ? 2 : 1);
    }
    (spec.stack.empty() ? dense_bytes_ : expert_bytes_) += static_cast<double>(view.bytes);
    (spec.stack.empty() ? dense_elements_ : expert_elements_) += elements;
    if (spec.name == "head.weight") {
      big_block_ = view.data;
      big_block_bytes_ = view.bytes;
    }
  }
}

void ShardModel::fill_caches(ShardBackend& backend) {
  cache::KvCache& kv = model_->kv_cache();
  const FillSpec codes{FillKind::kFp8, 900, 0, 0, 1, 1};
  const FillSpec keys{FillKind::kBf16, 901, 0, 1, 1, 1};
  for (std::int32_t layer = 0; layer < config_.n_layers; ++layer) {
    const std::int32_t ratio = config_.compress_ratios[static_cast<std::size_t>(layer)];
    if (ratio != 0) {
      backend.fill(codes, kv.compressed(layer).data, kv.layout().compressed_bytes(ratio));
    }
    if (ratio == 4) {
      backend.fill(keys, kv.index_keys(layer).data, kv.layout().index_bytes() / 2);
    }
  }
}

StepBytes ShardModel::step_bytes(std::int64_t n_rows, std::int64_t context) const {
  const double n = static_cast<double>(n_rows);
  const double picked = static_cast<double>(config_.expert_top_k) / config_.n_experts;
  StepBytes bytes;
  bytes.dense = dense_bytes_;
  bytes.experts = expert_bytes_ * (1 - std::pow(1 - picked, n));
  const auto row =
      static_cast<double>(tensor::row_bytes(tensor::RowFormat::kFp8, tensor::kHeadDim));
  const auto key =
      static_cast<double>(tensor::row_bytes(tensor::RowFormat::kBf16, tensor::kIndexDim));
  const auto tokens = static_cast<double>(context);
  for (const std::int32_t ratio : config_.compress_ratios) {
    bytes.cache += n * row * std::min(tokens, static_cast<double>(tensor::kWindowTokens));
    if (ratio == 4) {
      bytes.cache += n * (tokens / 4 * key +
                          row * std::min(tokens / 4, static_cast<double>(config_.index_top_k)));
    } else if (ratio != 0) {
      bytes.cache += n * tokens / ratio * row;
    }
  }
  return bytes;
}

double ShardModel::flops_per_token() const {
  const double picked = static_cast<double>(config_.expert_top_k) / config_.n_experts;
  return 2 * (dense_elements_ + expert_elements_ * picked);
}

const void* ShardModel::big_block(std::int64_t& bytes) const {
  bytes = big_block_bytes_;
  return big_block_;
}

}  // namespace tandem::bench
