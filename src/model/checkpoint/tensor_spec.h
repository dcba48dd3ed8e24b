// TensorSpec: one row of the tensor table: what the checkpoint must hold under a name, and which
// part of it a rank keeps. The table is made by model/v4; this folder only reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/dtype.h"
#include "foundation/base/status.h"

namespace tandem::checkpoint {

// How a tensor is divided over the ranks. SOURCE: model.md 3.5, "TP form".
enum class Split {
  kReplicated,  // every rank holds all of it
  kRows,        // equal parts of dim 0
  kColumns,     // equal parts of dim 1
};

// What a tensor is for; reports add bytes up by this.
enum class TensorGroup {
  kEmbedding,
  kNorm,
  kHyperConnection,
  kAttention,
  kCompressor,
  kIndexer,
  kRouter,
  kTokenExperts,  // tid2eid
  kSharedExpert,
  kExpertWeights,
  kExpertScales,
  kHead,
  kDraft,  // what the draft blocks have besides a plain layer's tensors
};
constexpr int kTensorGroupCount = 13;

std::string_view split_name(Split split);
std::string_view tensor_group_name(TensorGroup group);

struct TensorSpec {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  std::vector<std::int64_t> shape;
  Split split = Split::kReplicated;
  // Parts of the split dim must be multiples of this many elements, so that no scale block is cut:
  // 128 rows of an FP8 weight, 16 bytes (32 values) of an FP4 row, 1 for scales.
  std::int64_t split_unit = 1;
  int layer = -1;  // main layers 0.., draft stages n_layers.., -1: belongs to none
  TensorGroup group = TensorGroup::kNorm;
  // Experts of a layer lie behind each other: tensors with the same stack name, by stack_index.
  // "layers.3.ffn.experts.w1.weight". Empty: not stacked.
  std::string stack;
  int stack_index = 0;
  std::int64_t integer_bound = 0;  // integer tensors: every value is in [0, bound)

  std::int64_t elements() const;
  std::int64_t bytes() const;
};

// The part of a tensor that a rank holds.
struct Slice {
  std::vector<std::int64_t> shape;
  std::int64_t row_begin = 0;  // of the whole tensor seen as [rows, row_bytes]
  std::int64_t row_count = 0;
  std::int64_t row_bytes = 0;     // of the whole tensor
  std::int64_t column_begin = 0;  // bytes within a row
  std::int64_t column_bytes = 0;

  std::int64_t bytes() const { return row_count * column_bytes; }
  bool contiguous() const { return column_bytes == row_bytes; }
};

// ERRORS: kInvalidArgument names the tensor, its dim and the unit that would be cut.
Result<Slice> slice_of(const TensorSpec& spec, int rank, int world);

}  // namespace tandem::checkpoint
