// One small safetensors file in memory, for golden vectors.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "model/checkpoint/safetensors.h"

namespace tandem::testing {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    bytes_ = all.str();
    const auto length =
        checkpoint::parse_header_length(std::string_view(bytes_).substr(0, 8), bytes_.size());
    EXPECT_TRUE(length.ok()) << path << ": " << length.status().to_string();
    const auto header = checkpoint::parse_header(std::string_view(bytes_).substr(8, *length));
    EXPECT_TRUE(header.ok()) << path << ": " << header.status().to_string();
    for (const checkpoint::ShardTensor& tensor : header->tensors) {
      tensors_.emplace(tensor.name, tensor);
    }
    data_ = 8 + *length;
  }

  bool has(const std::string& name) const { return tensors_.count(name) != 0; }

  std::vector<float> f32(const std::string& name) const { return read<float>(name); }
  std::vector<std::int32_t> i32(const std::string& name) const { return read<std::int32_t>(name); }

  const std::vector<std::int64_t>& shape(const std::string& name) const {
    return tensors_.at(name).shape;
  }

 private:
  template <typename T>
  std::vector<T> read(const std::string& name) const {
    const checkpoint::ShardTensor& tensor = tensors_.at(name);
    std::vector<T> values((tensor.end - tensor.begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + tensor.begin, tensor.end - tensor.begin);
    return values;
  }

  std::string bytes_;
  std::size_t data_ = 0;
  std::map<std::string, checkpoint::ShardTensor> tensors_;
};

}  // namespace tandem::testing
