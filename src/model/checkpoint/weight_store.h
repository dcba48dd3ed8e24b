// WeightStore: the weights of one rank in memory, packed as the checkpoint stores them, under the
// checkpoint's names. Shards are read once, in order, with the page cache dropped behind; all
// problems of all shards come back in one report and nothing half-loaded survives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compute/device/device.h"
#include "compute/tensor/dtype.h"
#include "compute/tensor/weight_matrix.h"
#include "foundation/base/status.h"
#include "model/checkpoint/index.h"
#include "model/checkpoint/tensor_spec.h"

namespace tandem::checkpoint {

struct LoadProgress {
  std::int64_t done_bytes = 0;  // of this rank's part
  std::int64_t total_bytes = 0;
  int done_shards = 0;
  int total_shards = 0;
};

struct LoadOptions {
  int rank = 0;
  int world = 1;
  int n_threads = 2;  // shards read at once
  // Called from the loading threads, one call at a time, a few hundred times in all.
  std::function<void(const LoadProgress&)> progress;
};

// Valid as long as the store. Integer tensors are kI32, whatever the file has.
struct TensorView {
  tensor::DType dtype = tensor::DType::kF32;
  std::vector<std::int64_t> shape;  // of this rank's part
  const void* data = nullptr;       // 256-byte aligned, but for tensors inside a stack
  std::int64_t bytes = 0;
};

// Equal matrices behind each other: matrix i is first.data + i * data_stride_bytes.
struct MatrixStack {
  tensor::WeightMatrix first;
  std::int64_t count = 0;
  std::int64_t data_stride_bytes = 0;
  std::int64_t scale_stride_bytes = 0;
};

class WeightStore {
 public:
  // `device` outlives the store. `table` must have passed check_tensors() against `files`.
  // ERRORS: kDataLoss with every bad value and short read; kInvalidArgument for a table that cannot
  // be split over options.world; kResourceExhausted.
  static Result<WeightStore> load(const CheckpointFiles& files,
                                  const std::vector<TensorSpec>& table, device::Device& device,
                                  const LoadOptions& options);

  // The same layout in memory with values from elsewhere: fill(spec, view, data) is called for
  // every tensor of the table with the memory of this rank's part. For measurements at sizes of
  // which there is no checkpoint at hand.
  using FillTensor = std::function<void(const TensorSpec&, const TensorView&, void* data)>;
  static Result<WeightStore> make(const std::vector<TensorSpec>& table, device::Device& device,
                                  int rank, int world, const FillTensor& fill);

  int rank() const { return rank_; }
  int world() const { return world_; }
  std::int64_t bytes() const { return bytes_; }

  bool has(std::string_view name) const;

  // The functions below REQUIRE that the table has the tensor with the named type.
  const TensorView& get(std::string_view name) const;
  const float* f32(std::string_view name) const;
  const std::uint16_t* bf16(std::string_view name) const;
  const std::int32_t* i32(std::string_view name) const;

  // "layers.0.attn.wq_a" -> weight and, if quantised, scale of [rows, cols] of this rank.
  tensor::WeightMatrix matrix(std::string_view prefix) const;

  // ("layers.0.ffn.experts", "w1") -> w1 of all experts.
  MatrixStack stack(std::string_view experts, std::string_view kind) const;

 private:
  WeightStore() = default;

  // Allocates everything and enters the views. slices[i]: what this rank holds of table[i].
  Status place(const std::vector<TensorSpec>& table, device::Device& device, int rank, int world,
               std::vector<Slice>& slices);

  int rank_ = 0;
  int world_ = 1;
  std::int64_t bytes_ = 0;
  std::vector<device::Buffer> buffers_;  // one per layer
  std::unordered_map<std::string, TensorView> tensors_;
  std::unordered_map<std::string, std::int64_t> stack_sizes_;
};

// Bytes that load() will allocate, by label ("weights: layer 3"), without reading anything.
Result<std::vector<device::MemoryUse>> plan_weights(const std::vector<TensorSpec>& table, int rank,
                                                    int world);

// Reads all data of all shards and reports bad values and short reads; keeps nothing in memory.
void check_values(const CheckpointFiles& files, const std::vector<TensorSpec>& table, int n_threads,
                  const std::function<void(const LoadProgress&)>& progress, ProblemList& problems);

}  // namespace tandem::checkpoint
