#include "model/v4/synth.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "foundation/json/json.h"
#include "model/checkpoint/index.h"
#include "model/checkpoint/shard_writer.h"
#include "model/v4/synth_values.h"
#include "model/v4/tensor_table.h"

namespace tandem::v4 {
namespace {

namespace fs = std::filesystem;
using checkpoint::TensorSpec;

using Shard = std::vector<const TensorSpec*>;

// In table order: embedding, layers, head, draft stages.
std::vector<Shard> make_shards(const std::vector<TensorSpec>& table) {
  std::vector<Shard> shards;
  for (const TensorSpec& spec : table) {
    if (shards.empty() || shards.back().back()->layer != spec.layer) {
      shards.emplace_back();
    }
    shards.back().push_back(&spec);
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

std::int64_t total_bytes(const std::vector<TensorSpec>& table) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : table) {
    bytes += spec.bytes();
  }
  return bytes;
}

Status prepare_folder(const fs::path& folder, std::int64_t bytes) {
  std::error_code error;
  if (fs::exists(folder, error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    return already_exists("{}: is there and not empty; choose another folder or remove it",
                          folder.string());
  }
  fs::create_directories(folder, error);
  if (error) {
    return unavailable("{}: cannot be created: {}", folder.string(), error.message());
  }
  const fs::space_info space = fs::space(folder, error);
  const auto margin = std::uintmax_t{64} << 20;  // headers, index, tokenizer
  if (!error && space.available < static_cast<std::uintmax_t>(bytes) + margin) {
    return resource_exhausted("{}: the checkpoint needs {} bytes, the disk has {} left",
                              folder.string(), bytes, space.available);
  }
  return ok_status();
}

std::string index_json(const std::vector<Shard>& shards, std::int64_t bytes) {
  json::Object map;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    for (const TensorSpec* spec : shards[i]) {
      map[spec->name] = name;
    }
  }
  json::Object index;
  index["metadata"] = json::Object{{"total_size", bytes}};
  index["weight_map"] = std::move(map);
  return json::dump(index);
}

class ShardFiller {
 public:
  ShardFiller(const SynthOptions& options, std::int64_t total)
      : options_(options), total_(total), tables_(options.seed), chunk_(std::size_t{1} << 20) {}

  Status write(const fs::path& path, const Shard& shard) {
    TANDEM_ASSIGN(checkpoint::ShardWriter writer, checkpoint::ShardWriter::create(path, shard));
    for (const TensorSpec* spec : shard) {
      TANDEM_TRY(write_tensor(writer, *spec));
    }
    return writer.close();
  }

 private:
  Status write_tensor(checkpoint::ShardWriter& writer, const TensorSpec& spec) {
    ValueSource source(spec, tables_);
    std::int64_t left = spec.bytes();
    // Whole rows of expert ids.
    const std::int64_t row = spec.dtype == tensor::DType::kI64 ? spec.shape[1] * 8 : 8;
    const std::int64_t step = static_cast<std::int64_t>(chunk_.size()) / row * row;
    while (left > 0) {
      const std::span<std::uint8_t> part(chunk_.data(),
                                         static_cast<std::size_t>(std::min(left, step)));
      source.fill(part);
      TANDEM_TRY(writer.append(part));
      left -= static_cast<std::int64_t>(part.size());
      done_ += static_cast<std::int64_t>(part.size());
    }
    if (options_.progress && done_ >= next_report_) {
      next_report_ = done_ + total_ / 200;
      options_.progress(done_, total_);
    }
    return ok_status();
  }

  const SynthOptions& options_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  std::int64_t next_report_ = 0;
  ValueTables tables_;
  std::vector<std::uint8_t> chunk_;
};

Result<std::string> tokenizer_text(const SynthOptions& options) {
  if (options.tokenizer.empty()) {
    return minimal_tokenizer_json(options.config.vocab_size);
  }
  return checkpoint::read_text_file(options.tokenizer);
}

}  // namespace

Status write_synthetic_model(const fs::path& folder, const SynthOptions& options) {
  // A config that the reader would refuse must not be written.
  const std::string config_text = json::dump(config_to_json(options.config));
  TANDEM_TRY(parse_config(config_text).status());
  TANDEM_ASSIGN(const std::string tokenizer, tokenizer_text(options));
  const std::vector<TensorSpec> table = make_tensor_table(options.config);
  const std::int64_t bytes = total_bytes(table);
  TANDEM_TRY(prepare_folder(folder, bytes));
  const std::vector<Shard> shards = make_shards(table);
  ShardFiller filler(options, bytes);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    TANDEM_TRY(filler.write(folder / shard_name(i, shards.size()), shards[i]));
  }
  TANDEM_TRY(checkpoint::write_text_file(folder / "model.safetensors.index.json",
                                         index_json(shards, bytes)));
  TANDEM_TRY(checkpoint::write_text_file(folder / "tokenizer.json", tokenizer));
  return checkpoint::write_text_file(folder / "config.json", config_text);
}

}  // namespace tandem::v4
