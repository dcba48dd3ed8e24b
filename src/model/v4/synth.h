// Synthetic checkpoints: random weights of any shape in the official format, from a seed, for tests
// and benches. Written as a stream: memory stays small whatever the size on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "foundation/base/status.h"
#include "model/v4/config.h"

namespace tandem::v4 {

struct SynthOptions {
  ModelConfig config;  // with its draft fields, as flash_config() and tiny_config() make it
  std::uint64_t seed = 1;
  std::filesystem::path tokenizer;  // tokenizer.json to copy; empty: a minimal byte-level one
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
};

// Writes config.json, tokenizer.json, the index and one shard for each of: embedding, every layer,
// head, every draft stage. SOURCE: model.md 3.1.
// ERRORS: kAlreadyExists if `folder` exists and is not empty; kResourceExhausted if the disk is too
// small; kInvalidArgument if the vocabulary cannot hold the tokenizer's tokens; kUnavailable.
Status write_synthetic_model(const std::filesystem::path& folder, const SynthOptions& options);

// A byte-level tokenizer.json: one token per byte and all special tokens of model.md 5.2. A
// vocabulary of the real size has them at their real ids, a smaller one packs them from id 259 on,
// with one place holder; ids left over are filler words. ERRORS: kInvalidArgument if they do not
// fit.
Result<std::string> minimal_tokenizer_json(std::int32_t vocab_size);

}  // namespace tandem::v4
