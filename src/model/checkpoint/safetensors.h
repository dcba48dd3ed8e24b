// Safetensors: the header of one shard. 8 bytes little-endian header length, a JSON object, data.
// The parser trusts nothing: sizes are bounded, products cannot overflow, tensors must tile the
// data exactly, without holes and overlaps. SOURCE: model.md 3.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compute/tensor/dtype.h"
#include "foundation/base/status.h"

namespace tandem::checkpoint {

constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{64} << 20;
constexpr int kMaxRank = 8;

struct ShardTensor {
  std::string name;
  std::string dtype_word;              // as written
  std::optional<tensor::DType> dtype;  // empty: a type that no V4 checkpoint uses
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the data
  std::uint64_t end = 0;
};

struct ShardHeader {
  std::vector<ShardTensor> tensors;  // in order of begin
  std::uint64_t data_offset = 0;     // of the data in the file
  std::uint64_t data_bytes = 0;      // where the last tensor ends
};

// The header length from a file's first 8 bytes. ERRORS: kInvalidArgument for a length over
// kMaxHeaderBytes or over the file.
Result<std::uint64_t> parse_header_length(std::string_view first8, std::uint64_t file_bytes);

// `json` is the header text without the 8 length bytes.
// ERRORS: kInvalidArgument names the tensor and what breaks the format.
Result<ShardHeader> parse_header(std::string_view json);

// True for the text that git-lfs leaves in place of a file.
bool is_lfs_pointer(std::string_view first_bytes);

// Keys that occur twice in objects `depth` levels deep (1 = the outermost object) of a valid JSON
// text. JSON parsers keep one of them silently; a checkpoint must not have any.
std::vector<std::string> duplicate_keys(std::string_view json, int depth);

// The JSON text of a header with its length in front, padded with spaces to 8 bytes.
std::string write_header(const std::vector<ShardTensor>& tensors);

}  // namespace tandem::checkpoint
