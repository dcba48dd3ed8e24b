// A small synthetic checkpoint and copies of it that tests break in one place. Copies link to the
// files of the original, as a Hugging Face cache does, and own only what they change.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "foundation/json/json.h"
#include "model/v4/synth.h"

namespace tandem::test {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "tandem-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// 4 layers of every kind and 4 experts: some megabytes.
inline v4::ModelConfig small_config(v4::DraftKind draft) {
  v4::ModelConfig config = v4::tiny_config(draft, 4);
  config.n_experts = 4;
  return config;
}

// Written once for each draft kind.
inline const fs::path& small_checkpoint(v4::DraftKind draft = v4::DraftKind::kMtp) {
  static const TempFolder folder;
  static std::vector<fs::path> paths(3);
  fs::path& path = paths[static_cast<std::size_t>(draft)];
  if (path.empty()) {
    path = folder.path() / std::string(v4::draft_kind_name(draft));
    v4::SynthOptions options;
    options.config = small_config(draft);
    TANDEM_CHECK(v4::write_synthetic_model(path, options).ok(), "synthetic checkpoint");
  }
  return path;
}

class BrokenCheckpoint {
 public:
  explicit BrokenCheckpoint(v4::DraftKind draft = v4::DraftKind::kMtp) {
    for (const auto& entry : fs::directory_iterator(small_checkpoint(draft))) {
      fs::create_symlink(entry.path(), path() / entry.path().filename());
    }
  }

  const fs::path& path() const { return folder_.path(); }

  // A file's bytes, changed.
  void edit(const std::string& name, const std::function<void(std::string&)>& change) {
    std::string bytes = read_file(path() / name);
    change(bytes);
    fs::remove(path() / name);
    write_file(path() / name, bytes);
  }

  void edit_json(const std::string& name, const std::function<void(json::Object&)>& change) {
    edit(name, [&](std::string& text) {
      json::Value value = json::parse(text).value();
      change(value.as_object());
      text = json::dump(value);
    });
  }

  // A shard's header, changed; the data stay.
  void edit_header(const std::string& name, const std::function<void(json::Object&)>& change) {
    edit(name, [&](std::string& bytes) {
      json::Value header = json::parse(header_text(bytes)).value();
      change(header.as_object());
      bytes = with_length(json::dump(header)) + bytes.substr(8 + header_text(bytes).size());
    });
  }

  // The bytes of one tensor, changed in place.
  void edit_tensor(const std::string& shard, const std::string& tensor,
                   const std::function<void(char* data, std::size_t bytes)>& change) {
    edit(shard, [&](std::string& bytes) {
      const std::string text = header_text(bytes);
      const json::Value header = json::parse(text).value();
      const json::Array& offsets = header.at(tensor).at("data_offsets").as_array();
      const auto begin = static_cast<std::size_t>(offsets[0].as_int64());
      const auto end = static_cast<std::size_t>(offsets[1].as_int64());
      change(bytes.data() + 8 + text.size() + begin, end - begin);
    });
  }

  void remove(const std::string& name) { fs::remove(path() / name); }

  static std::string header_text(const std::string& bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    return bytes.substr(8, length);
  }

  static std::string with_length(const std::string& header) {
    std::string out(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(out.data(), &length, 8);
    return out + header;
  }

 private:
  TempFolder folder_;
};

}  // namespace tandem::test
