// CheckpointFiles: where every tensor of a checkpoint lies. Reads model.safetensors.index.json and
// all shard headers (not the data), from a plain folder or a Hugging Face cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compute/tensor/dtype.h"
#include "foundation/base/status.h"
#include "model/checkpoint/problem.h"

namespace tandem::checkpoint {

struct ShardFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t n_tensors = 0;
};

struct TensorLocation {
  std::string name;
  std::string dtype_word;
  std::optional<tensor::DType> dtype;
  std::vector<std::int64_t> shape;
  int shard = 0;             // index into CheckpointFiles::shards
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

struct CheckpointFiles {
  std::filesystem::path root;  // the folder with config.json
  std::vector<ShardFile> shards;
  std::vector<TensorLocation> tensors;                   // by shard, then by offset
  std::unordered_map<std::string, std::size_t> by_name;  // index into tensors
  std::unordered_set<std::string> unreadable;  // names that the index puts into unreadable shards

  const TensorLocation* find(const std::string& name) const;
};

// The folder with config.json: `path` itself, or in a cache (models--org--name) the snapshot that
// refs/main names, or its only snapshot. ERRORS: kNotFound says what was looked for.
Result<std::filesystem::path> resolve_checkpoint(const std::filesystem::path& path);

// Reads index and headers. What is wrong goes to `problems`; the rest is still listed.
CheckpointFiles scan_checkpoint(const std::filesystem::path& root, ProblemList& problems);

// A small text file, whole. ERRORS: kNotFound, kDataLoss for a git-lfs pointer, kResourceExhausted
// over max_bytes.
Result<std::string> read_text_file(const std::filesystem::path& path,
                                   std::uint64_t max_bytes = std::uint64_t{64} << 20);

}  // namespace tandem::checkpoint
