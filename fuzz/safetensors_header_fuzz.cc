// Any bytes as the start of a shard: refused with a message, or a header whose tensors lie within
// its data, in order, and that reads the same after being written again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "model/checkpoint/safetensors.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_header(const tandem::checkpoint::ShardHeader& header) {
  std::uint64_t at = 0;
  for (const tandem::checkpoint::ShardTensor& tensor : header.tensors) {
    require(tensor.begin == at && tensor.end >= tensor.begin);
    require(tensor.end <= header.data_bytes);
    at = tensor.end;
  }
  require(at == header.data_bytes);
  const std::string again = tandem::checkpoint::write_header(header.tensors);
  const auto read = tandem::checkpoint::parse_header(std::string_view(again).substr(8));
  require(read.ok() && read->tensors.size() == header.tensors.size());
  require(read->data_bytes == header.data_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Once as a file, once as bare JSON, so that the length need not be guessed.
  const auto length = tandem::checkpoint::parse_header_length(bytes, size);
  if (length.ok()) {
    require(*length <= size - 8);
    const auto header = tandem::checkpoint::parse_header(bytes.substr(8, *length));
    require(header.ok() || !header.status().message().empty());
  }
  const auto header = tandem::checkpoint::parse_header(bytes);
  if (header.ok()) {
    check_header(*header);
  } else {
    require(!header.status().message().empty());
  }
  return 0;
}
