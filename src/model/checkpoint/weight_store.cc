#include "model/checkpoint/weight_store.h"

#include <algorithm>
#include <map>

#include "model/checkpoint/shard_reader.h"

namespace tandem::checkpoint {
namespace {

using tensor::DType;
using tensor::WeightFormat;

constexpr std::int64_t kAlignment = 256;

std::int64_t align(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_integer(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64;
}

struct Placement {
  Slice slice;
  int layer = -1;
  std::int64_t offset = 0;  // in the layer's buffer
  std::int64_t bytes = 0;   // in memory
};

struct StackPlace {
  std::int64_t count = 0;
  std::int64_t bytes = 0;    // of one matrix
  std::int64_t offset = -1;  // in the layer's buffer
};

struct Plan {
  std::vector<Placement> placements;  // one per table row
  std::map<int, std::int64_t> layer_bytes;
  std::map<std::string, StackPlace> stacks;
};

std::string layer_label(int layer) {
  return layer < 0 ? "weights: embedding and head" : "weights: layers";
}

// Places every tensor: stacks as one run of memory, the others one by one.
Result<Plan> make_plan(const std::vector<TensorSpec>& table, int rank, int world) {
  Plan plan;
  for (const TensorSpec& spec : table) {
    Placement place;
    TANDEM_ASSIGN(place.slice, slice_of(spec, rank, world));
    place.layer = spec.layer;
    place.bytes = is_integer(spec.dtype) ? place.slice.bytes() / tensor::dtype_bytes(spec.dtype) * 4
                                         : place.slice.bytes();
    if (!spec.stack.empty()) {
      StackPlace& stack = plan.stacks[spec.stack];
      TANDEM_CHECK(stack.count == 0 || stack.bytes == place.bytes, spec.stack);
      stack.count = std::max<std::int64_t>(stack.count, spec.stack_index + 1);
      stack.bytes = place.bytes;
    }
    plan.placements.push_back(std::move(place));
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    Placement& place = plan.placements[i];
    std::int64_t& end = plan.layer_bytes[place.layer];
    if (table[i].stack.empty()) {
      place.offset = end;
      end = align(end + place.bytes);
      continue;
    }
    StackPlace& stack = plan.stacks[table[i].stack];
    if (stack.offset < 0) {
      stack.offset = end;
      end = align(end + stack.count * stack.bytes);
    }
    place.offset = stack.offset + table[i].stack_index * stack.bytes;
  }
  return plan;
}

}  // namespace

Result<std::vector<device::MemoryUse>> plan_weights(const std::vector<TensorSpec>& table, int rank,
                                                    int world) {
  TANDEM_ASSIGN(const Plan plan, make_plan(table, rank, world));
  std::vector<device::MemoryUse> uses;
  for (const auto& [layer, bytes] : plan.layer_bytes) {
    const std::string label = layer_label(layer);
    if (uses.empty() || uses.back().label != label) {
      uses.push_back({label, 0});
    }
    uses.back().bytes += bytes;
  }
  return uses;
}

Status WeightStore::place(const std::vector<TensorSpec>& table, device::Device& device, int rank,
                          int world, std::vector<Slice>& slices) {
  if (world < 1 || rank < 0 || rank >= world) {
    return invalid_argument("weights: rank {} of {} ranks", rank, world);
  }
  TANDEM_ASSIGN(Plan plan, make_plan(table, rank, world));
  rank_ = rank;
  world_ = world;
  std::map<int, std::uint8_t*> base;
  for (const auto& [layer, bytes] : plan.layer_bytes) {
    TANDEM_ASSIGN(device::Buffer buffer, device.allocate(bytes, layer_label(layer)));
    base[layer] = buffer.as<std::uint8_t>();
    bytes_ += bytes;
    buffers_.push_back(std::move(buffer));
  }
  for (const auto& [name, stack] : plan.stacks) {
    stack_sizes_[name] = stack.count;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    Placement& place = plan.placements[i];
    TensorView view;
    view.dtype = is_integer(table[i].dtype) ? DType::kI32 : table[i].dtype;
    view.shape = place.slice.shape;
    view.data = base[place.layer] + place.offset;
    view.bytes = place.bytes;
    tensors_.emplace(table[i].name, std::move(view));
    slices.push_back(std::move(place.slice));
  }
  return ok_status();
}

Result<WeightStore> WeightStore::load(const CheckpointFiles& files,
                                      const std::vector<TensorSpec>& table, device::Device& device,
                                      const LoadOptions& options) {
  WeightStore store;
  std::vector<Slice> slices;
  TANDEM_TRY(store.place(table, device, options.rank, options.world, slices));
  std::vector<ReadJob> jobs;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const TensorLocation* location = files.find(table[i].name);
    if (location == nullptr) {
      return data_loss("{}: is in no shard", table[i].name);
    }
    ReadJob job;
    job.location = location;
    job.spec = &table[i];
    job.slice = std::move(slices[i]);
    job.out =
        const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(store.get(table[i].name).data));
    job.device = &device;
    jobs.push_back(std::move(job));
  }
  ProblemList problems;
  ShardReader(files, std::move(jobs), options.progress).run(options.n_threads, problems);
  TANDEM_TRY(problems.to_status(files.root.string()));
  return store;
}

Result<WeightStore> WeightStore::make(const std::vector<TensorSpec>& table, device::Device& device,
                                      int rank, int world, const FillTensor& fill) {
  WeightStore store;
  std::vector<Slice> slices;
  TANDEM_TRY(store.place(table, device, rank, world, slices));
  for (const TensorSpec& spec : table) {
    const TensorView& view = store.get(spec.name);
    fill(spec, view, const_cast<void*>(view.data));
  }
  return store;
}

bool WeightStore::has(std::string_view name) const {
  return tensors_.count(std::string(name)) != 0;
}

const TensorView& WeightStore::get(std::string_view name) const {
  const auto it = tensors_.find(std::string(name));
  TANDEM_CHECK(it != tensors_.end(), name);
  return it->second;
}

const float* WeightStore::f32(std::string_view name) const {
  const TensorView& view = get(name);
  TANDEM_CHECK(view.dtype == DType::kF32, name);
  return static_cast<const float*>(view.data);
}

const std::uint16_t* WeightStore::bf16(std::string_view name) const {
  const TensorView& view = get(name);
  TANDEM_CHECK(view.dtype == DType::kBf16, name);
  return static_cast<const std::uint16_t*>(view.data);
}

const std::int32_t* WeightStore::i32(std::string_view name) const {
  const TensorView& view = get(name);
  TANDEM_CHECK(view.dtype == DType::kI32, name);
  return static_cast<const std::int32_t*>(view.data);
}

tensor::WeightMatrix WeightStore::matrix(std::string_view prefix) const {
  const std::string base(prefix);
  const TensorView& weight = get(base + ".weight");
  TANDEM_CHECK(weight.shape.size() == 2, prefix);
  tensor::WeightMatrix matrix;
  matrix.rows = weight.shape[0];
  matrix.cols = weight.shape[1];
  matrix.data = weight.data;
  switch (weight.dtype) {
    case DType::kF32:
      matrix.format = WeightFormat::kF32;
      return matrix;
    case DType::kBf16:
      matrix.format = WeightFormat::kBf16;
      return matrix;
    case DType::kF8E4M3:
      matrix.format = WeightFormat::kFp8;
      break;
    default:
      TANDEM_CHECK(weight.dtype == DType::kI8, prefix);
      matrix.format = WeightFormat::kFp4;
      matrix.cols *= 2;
  }
  const TensorView& scale = get(base + ".scale");
  TANDEM_CHECK(scale.dtype == DType::kF8E8M0, prefix);
  matrix.scales = static_cast<const std::uint8_t*>(scale.data);
  return matrix;
}

MatrixStack WeightStore::stack(std::string_view experts, std::string_view kind) const {
  const std::string name = fmt::format("{}.{}.weight", experts, kind);
  const auto it = stack_sizes_.find(name);
  TANDEM_CHECK(it != stack_sizes_.end(), name);
  MatrixStack stack;
  stack.first = matrix(fmt::format("{}.0.{}", experts, kind));
  stack.count = it->second;
  stack.data_stride_bytes = get(fmt::format("{}.0.{}.weight", experts, kind)).bytes;
  stack.scale_stride_bytes =
      stack.first.is_quantised() ? get(fmt::format("{}.0.{}.scale", experts, kind)).bytes : 0;
  return stack;
}

void check_values(const CheckpointFiles& files, const std::vector<TensorSpec>& table, int n_threads,
                  const std::function<void(const LoadProgress&)>& progress, ProblemList& problems) {
  std::vector<ReadJob> jobs;
  for (const TensorSpec& spec : table) {
    ReadJob job;
    job.location = files.find(spec.name);
    job.spec = &spec;
    const Result<Slice> slice = slice_of(spec, 0, 1);
    if (job.location == nullptr || job.location->shape != spec.shape || !slice.ok()) {
      continue;  // check_tensors() has named it
    }
    job.slice = *slice;
    jobs.push_back(std::move(job));
  }
  ShardReader(files, std::move(jobs), progress).run(n_threads, problems);
}

}  // namespace tandem::checkpoint
