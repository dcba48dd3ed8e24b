// ShardWriter: writes one safetensors shard, header first, then data as it is produced, so that a
// shard of any size needs a chunk of memory only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "foundation/base/status.h"
#include "model/checkpoint/tensor_spec.h"

namespace tandem::checkpoint {

class ShardWriter {
 public:
  // Creates the file and writes the header of `tensors`, whose data follow in this order.
  // ERRORS: kUnavailable.
  static Result<ShardWriter> create(const std::filesystem::path& path,
                                    const std::vector<const TensorSpec*>& tensors);

  ShardWriter(ShardWriter&& other) noexcept;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;
  ~ShardWriter();

  Status append(std::span<const std::uint8_t> bytes);

  // ERRORS: kUnavailable; kInternal if other than the header's bytes were appended.
  Status close();

 private:
  ShardWriter() = default;

  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t expected_bytes_ = 0;
  std::int64_t written_bytes_ = 0;
};

// Writes a whole small file. ERRORS: kUnavailable.
Status write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace tandem::checkpoint
