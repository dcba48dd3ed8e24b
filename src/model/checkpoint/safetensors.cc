#include "model/checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <set>

#include "foundation/json/json.h"

namespace tandem::checkpoint {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

// A non-negative integer of a JSON array, or -1.
std::int64_t non_negative(const json::Value& value) {
  return value.is_int64() && value.get_int64() >= 0 ? value.get_int64() : -1;
}

Status read_shape(const json::Value& entry, ShardTensor& tensor) {
  const json::Value* shape = json::find(entry, "shape");
  if (shape == nullptr || !shape->is_array() || shape->get_array().size() > kMaxRank) {
    return invalid_argument("tensor {}: shape is no array of at most {} sizes", tensor.name,
                            kMaxRank);
  }
  for (const json::Value& dim : shape->get_array()) {
    const std::int64_t size = non_negative(dim);
    if (size < 0) {
      return invalid_argument("tensor {}: shape has {}, expected a size", tensor.name,
                              json::dump(dim));
    }
    tensor.shape.push_back(size);
  }
  return ok_status();
}

Status read_offsets(const json::Value& entry, ShardTensor& tensor) {
  const json::Value* offsets = json::find(entry, "data_offsets");
  if (offsets == nullptr || !offsets->is_array() || offsets->get_array().size() != 2) {
    return invalid_argument("tensor {}: data_offsets is no array of two offsets", tensor.name);
  }
  const std::int64_t begin = non_negative(offsets->get_array()[0]);
  const std::int64_t end = non_negative(offsets->get_array()[1]);
  if (begin < 0 || end < begin) {
    return invalid_argument("tensor {}: data_offsets {}, expected 0 <= begin <= end", tensor.name,
                            json::dump(*offsets));
  }
  tensor.begin = static_cast<std::uint64_t>(begin);
  tensor.end = static_cast<std::uint64_t>(end);
  return ok_status();
}

// Bytes of the shape, or -1 if they overflow.
std::int64_t shape_bytes(const ShardTensor& tensor) {
  std::int64_t bytes = tensor::dtype_bytes(*tensor.dtype);
  for (const std::int64_t dim : tensor.shape) {
    if (dim != 0 && bytes > kMaxInt / dim) {
      return -1;
    }
    bytes *= dim;
  }
  return bytes;
}

Result<ShardTensor> read_tensor(std::string_view name, const json::Value& entry) {
  ShardTensor tensor;
  tensor.name = std::string(name);
  const json::Value* dtype = json::find(entry, "dtype");
  if (dtype == nullptr || !dtype->is_string()) {
    return invalid_argument("tensor {}: dtype is missing or no string", name);
  }
  tensor.dtype_word = std::string(dtype->get_string());
  tensor.dtype = tensor::parse_dtype(tensor.dtype_word);
  TANDEM_TRY(read_shape(entry, tensor));
  TANDEM_TRY(read_offsets(entry, tensor));
  if (tensor.dtype.has_value()) {
    const std::int64_t expected = shape_bytes(tensor);
    const std::uint64_t found = tensor.end - tensor.begin;
    if (expected < 0 || static_cast<std::uint64_t>(expected) != found) {
      return invalid_argument("tensor {}: {} bytes of data, its dtype and shape make {}", name,
                              found, expected < 0 ? "more than fits" : std::to_string(expected));
    }
  }
  return tensor;
}

// Tensors must follow each other without holes or overlaps, as the format demands.
Status check_tiling(const std::vector<ShardTensor>& tensors) {
  std::uint64_t at = 0;
  for (const ShardTensor& tensor : tensors) {
    if (tensor.begin != at) {
      return invalid_argument("tensor {}: begins at {}, the tensor before it ends at {}",
                              tensor.name, tensor.begin, at);
    }
    at = tensor.end;
  }
  return ok_status();
}

}  // namespace

Result<std::uint64_t> parse_header_length(std::string_view first8, std::uint64_t file_bytes) {
  if (first8.size() < 8) {
    return invalid_argument("{} bytes long, a shard has at least 8", first8.size());
  }
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) {
    length = (length << 8) | static_cast<unsigned char>(first8[i]);
  }
  if (length > kMaxHeaderBytes) {
    return invalid_argument("header length {} bytes, the limit is {}", length, kMaxHeaderBytes);
  }
  if (length > file_bytes - 8) {
    return invalid_argument("header length {} bytes, the file has {}", length, file_bytes);
  }
  return length;
}

Result<ShardHeader> parse_header(std::string_view text) {
  json::ParseLimits limits;
  limits.max_bytes = kMaxHeaderBytes;
  TANDEM_ASSIGN(const json::Value value, json::parse(text, limits));
  if (!value.is_object()) {
    return invalid_argument("header is {}, expected an object", json::type_name(value));
  }
  const std::vector<std::string> twice = duplicate_keys(text, 1);
  if (!twice.empty()) {
    return invalid_argument("tensor {}: twice in one header", twice.front());
  }
  ShardHeader header;
  header.data_offset = 8 + text.size();
  for (const auto& member : value.get_object()) {
    const std::string_view name = member.key();
    if (name == "__metadata__") {
      continue;
    }
    TANDEM_ASSIGN(ShardTensor tensor, read_tensor(name, member.value()));
    header.tensors.push_back(std::move(tensor));
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const ShardTensor& a, const ShardTensor& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  TANDEM_TRY(check_tiling(header.tensors));
  header.data_bytes = header.tensors.empty() ? 0 : header.tensors.back().end;
  return header;
}

bool is_lfs_pointer(std::string_view first_bytes) {
  return first_bytes.substr(0, 23) == "version https://git-lfs";
}

std::vector<std::string> duplicate_keys(std::string_view text, int depth) {
  std::set<std::string> seen;
  std::vector<std::string> twice;
  int level = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    level += (c == '{' || c == '[') ? 1 : (c == '}' || c == ']') ? -1 : 0;
    if (c != '"') {
      continue;
    }
    const std::size_t begin = i++;
    bool escaped = false;
    while (i < text.size() && text[i] != '"') {
      escaped |= text[i] == '\\';
      i += text[i] == '\\' ? 2 : 1;
    }
    const std::size_t after = text.find_first_not_of(" \t\r\n", std::min(i + 1, text.size()));
    if (level != depth || after == std::string_view::npos || text[after] != ':') {
      continue;
    }
    std::string key(text.substr(begin + 1, i - begin - 1));
    if (escaped) {
      const Result<json::Value> value = json::parse(text.substr(begin, i - begin + 1));
      key = value.ok() && value->is_string() ? std::string(value->get_string()) : key;
    }
    if (!seen.insert(key).second) {
      twice.push_back(key);
    }
  }
  return twice;
}

std::string write_header(const std::vector<ShardTensor>& tensors) {
  json::Object header;
  header["__metadata__"] = json::Object{{"format", "pt"}};
  for (const ShardTensor& tensor : tensors) {
    json::Array shape(tensor.shape.begin(), tensor.shape.end());
    json::Object entry;
    entry["dtype"] = tensor.dtype_word;
    entry["shape"] = std::move(shape);
    entry["data_offsets"] =
        json::Array{static_cast<std::int64_t>(tensor.begin), static_cast<std::int64_t>(tensor.end)};
    header[tensor.name] = std::move(entry);
  }
  std::string text = json::dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string out;
  for (std::size_t i = 0; i < 8; ++i) {
    out += static_cast<char>((text.size() >> (8 * i)) & 0xFFU);
  }
  return out + text;
}

}  // namespace tandem::checkpoint
