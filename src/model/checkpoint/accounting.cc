#include "model/checkpoint/accounting.h"

#include <fmt/ranges.h>

#include <unordered_set>

namespace tandem::checkpoint {
namespace {

using tensor::DType;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool is_integer(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64;
}

bool dtype_matches(const TensorLocation& found, DType expected) {
  return found.dtype == expected ||
         (found.dtype.has_value() && is_integer(*found.dtype) && is_integer(expected));
}

}  // namespace

void check_tensors(const CheckpointFiles& files, std::span<const TensorSpec> table,
                   ProblemList& problems) {
  std::unordered_set<std::string> known;
  for (const TensorSpec& spec : table) {
    known.insert(spec.name);
    const TensorLocation* found = files.find(spec.name);
    if (found == nullptr) {
      if (files.unreadable.count(spec.name) == 0) {
        problems.add(ProblemKind::kMissing, spec.name,
                     fmt::format("is in no shard, expected {} {}", tensor::dtype_name(spec.dtype),
                                 shape_text(spec.shape)));
      }
      continue;
    }
    if (!dtype_matches(*found, spec.dtype)) {
      problems.add(
          ProblemKind::kWrongDtype, spec.name,
          fmt::format("is {}, expected {}", found->dtype_word, tensor::dtype_name(spec.dtype)));
    }
    if (found->shape != spec.shape) {
      problems.add(ProblemKind::kWrongShape, spec.name,
                   fmt::format("has shape {}, expected {}", shape_text(found->shape),
                               shape_text(spec.shape)));
    }
  }
  for (const TensorLocation& tensor : files.tensors) {
    if (known.count(tensor.name) == 0) {
      problems.add(ProblemKind::kExtra, tensor.name,
                   fmt::format("{} {} belongs to no part of the model that config.json describes",
                               tensor.dtype_word, shape_text(tensor.shape)));
    }
  }
}

void check_split(std::span<const TensorSpec> table, int world, ProblemList& problems) {
  for (const TensorSpec& spec : table) {
    const Result<Slice> slice = slice_of(spec, 0, world);
    if (!slice.ok()) {
      problems.add(ProblemKind::kSplit, spec.name, slice.status().message());
    }
  }
}

}  // namespace tandem::checkpoint
