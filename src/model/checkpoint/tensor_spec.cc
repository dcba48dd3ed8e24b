#include "model/checkpoint/tensor_spec.h"

#include <array>

namespace tandem::checkpoint {

std::string_view split_name(Split split) {
  switch (split) {
    case Split::kReplicated:
      return "replicated";
    case Split::kRows:
      return "rows";
    case Split::kColumns:
      return "columns";
  }
  return "?";
}

std::string_view tensor_group_name(TensorGroup group) {
  constexpr std::array<std::string_view, kTensorGroupCount> kNames = {
      "embedding",     "norms",          "hyper-connections", "attention",
      "compressors",   "indexers",       "routers",           "token experts",
      "shared expert", "expert weights", "expert scales",     "head",
      "draft"};
  return kNames[static_cast<std::size_t>(group)];
}

std::int64_t TensorSpec::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t dim : shape) {
    n *= dim;
  }
  return n;
}

std::int64_t TensorSpec::bytes() const {
  return elements() * tensor::dtype_bytes(dtype);
}

Result<Slice> slice_of(const TensorSpec& spec, int rank, int world) {
  const std::int64_t element = tensor::dtype_bytes(spec.dtype);
  const std::int64_t rows = spec.shape.empty() ? 1 : spec.shape[0];
  Slice slice;
  slice.shape = spec.shape;
  slice.row_count = rows;
  slice.row_bytes = rows == 0 ? 0 : spec.elements() / rows * element;
  slice.column_bytes = slice.row_bytes;
  if (spec.split == Split::kReplicated || world == 1) {
    return slice;
  }
  const std::size_t dim = spec.split == Split::kRows ? 0 : 1;
  TANDEM_CHECK(dim < spec.shape.size(), spec.name);
  const std::int64_t size = spec.shape[dim];
  if (size % (spec.split_unit * world) != 0) {
    return invalid_argument(
        "{}: dim {} has {} elements; {} ranks need a multiple of {} x {} so that no head, group or "
        "scale block is cut",
        spec.name, dim, size, world, world, spec.split_unit);
  }
  const std::int64_t part = size / world;
  slice.shape[dim] = part;
  if (dim == 0) {
    slice.row_count = part;
    slice.row_begin = part * rank;
  } else {
    slice.column_bytes = slice.row_bytes / size * part;
    slice.column_begin = slice.column_bytes * rank;
  }
  return slice;
}

}  // namespace tandem::checkpoint
