#include "model/checkpoint/index.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "foundation/json/json.h"
#include "model/checkpoint/file.h"
#include "model/checkpoint/safetensors.h"

namespace tandem::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kLfsAdvice =
    "is a git-lfs pointer, not the data; fetch it with `git lfs pull` or download it again";

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard file name

struct Index {
  WeightMap weight_map;
  std::int64_t total_size = -1;  // -1: not stated
};

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.find('/') == std::string_view::npos && name != "." && name != "..";
}

Result<Index> parse_index(std::string_view text) {
  TANDEM_ASSIGN(const json::Value value, json::parse(text));
  const json::Value* map = json::find(value, "weight_map");
  if (map == nullptr || !map->is_object()) {
    return invalid_argument("has no object weight_map");
  }
  Index index;
  for (const auto& member : map->get_object()) {
    if (!member.value().is_string() ||
        !is_plain_name(std::string_view(member.value().get_string()))) {
      return invalid_argument("weight_map[{}] is {}, expected a file name in the same folder",
                              std::string_view(member.key()), json::dump(member.value()));
    }
    index.weight_map[std::string(member.key())] = std::string(member.value().get_string());
  }
  const json::Value* metadata = json::find(value, "metadata");
  const json::Value* total = metadata != nullptr ? json::find(*metadata, "total_size") : nullptr;
  if (total != nullptr && total->is_int64()) {
    index.total_size = total->get_int64();
  } else if (total != nullptr && total->is_double()) {
    index.total_size = static_cast<std::int64_t>(total->get_double());
  }
  return index;
}

// The index, or nothing if there is none or it is unusable (then `problems` says so).
std::optional<Index> read_index(const fs::path& root, ProblemList& problems) {
  const std::string name(kIndexName);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(root / name, error))) {
    return std::nullopt;
  }
  const Result<std::string> text = read_text_file(root / name);
  if (!text.ok()) {
    const bool pointer = text.status().code() == StatusCode::kDataLoss;
    problems.add(pointer ? ProblemKind::kPointerFile : ProblemKind::kUnreadable, name,
                 text.status().message());
    return std::nullopt;
  }
  Result<Index> index = parse_index(*text);
  if (!index.ok()) {
    problems.add(ProblemKind::kIndexMismatch, name, index.status().message());
    return std::nullopt;
  }
  for (const std::string& key : duplicate_keys(*text, 2)) {
    problems.add(ProblemKind::kDuplicate, key, "is twice in " + name);
  }
  return std::move(index).value();
}

std::set<std::string> shards_in_folder(const fs::path& root) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it->path().extension() == ".safetensors") {
      names.insert(name);
    }
  }
  return names;
}

// File names of the shards, in order.
std::set<std::string> shard_names(const fs::path& root, const std::optional<Index>& index,
                                  ProblemList& problems) {
  const std::set<std::string> present = shards_in_folder(root);
  if (!index.has_value()) {
    if (present.empty()) {
      problems.add(ProblemKind::kUnreadable, root.string(), "has no *.safetensors file");
    } else if (present.size() > 1 && problems.empty()) {
      problems.add(ProblemKind::kUnreadable, std::string(kIndexName),
                   fmt::format("is missing, but there are {} shards", present.size()));
    }
    return present;
  }
  std::set<std::string> named;
  for (const auto& entry : index->weight_map) {
    named.insert(entry.second);
  }
  for (const std::string& name : present) {
    if (named.count(name) == 0) {
      problems.add(ProblemKind::kIndexMismatch, name, "is in the folder, but not in the index");
    }
  }
  return named;
}

struct ReadHeader {
  std::optional<ShardHeader> header;
  std::uint64_t file_bytes = 0;
};

// What the first bytes of a shard say; `problems` gets what makes it unusable or incomplete.
ReadHeader read_shard(const fs::path& path, const std::string& name, ProblemList& problems) {
  ReadHeader result;
  Result<ReadFile> file = ReadFile::open(path);
  if (!file.ok()) {
    problems.add(ProblemKind::kUnreadable, name, file.status().message());
    return result;
  }
  result.file_bytes = file->bytes();
  std::string start(std::min<std::uint64_t>(file->bytes(), 64), '\0');
  const auto bytes_of = [](std::string& text) {
    return std::span<std::uint8_t>(reinterpret_cast<std::uint8_t*>(text.data()), text.size());
  };
  Status status = file->read_at(0, bytes_of(start));
  if (!status.ok()) {
    problems.add(ProblemKind::kUnreadable, name, status.message());
    return result;
  }
  if (is_lfs_pointer(start)) {
    problems.add(ProblemKind::kPointerFile, name, std::string(kLfsAdvice));
    return result;
  }
  const Result<std::uint64_t> length = parse_header_length(start, file->bytes());
  if (!length.ok()) {
    problems.add(ProblemKind::kBadHeader, name, length.status().message());
    return result;
  }
  std::string text(*length, '\0');
  status = file->read_at(8, bytes_of(text));
  Result<ShardHeader> header = status.ok() ? parse_header(text) : Result<ShardHeader>(status);
  if (!header.ok()) {
    problems.add(ProblemKind::kBadHeader, name, header.status().message());
    return result;
  }
  const std::uint64_t expected = header->data_offset + header->data_bytes;
  if (file->bytes() < expected) {
    problems.add(ProblemKind::kTruncated, name,
                 fmt::format("has {} bytes, its header describes {}; download it again",
                             file->bytes(), expected));
  } else if (file->bytes() > expected) {
    problems.add(ProblemKind::kBadHeader, name,
                 fmt::format("has {} bytes, {} more than its header describes", file->bytes(),
                             file->bytes() - expected));
  }
  result.header = std::move(header).value();
  return result;
}

void add_tensors(const ShardHeader& header, int shard, CheckpointFiles& files,
                 ProblemList& problems) {
  for (const ShardTensor& tensor : header.tensors) {
    const auto [it, fresh] = files.by_name.emplace(tensor.name, files.tensors.size());
    if (!fresh) {
      const TensorLocation& other = files.tensors[it->second];
      problems.add(
          ProblemKind::kDuplicate, tensor.name,
          fmt::format("is in {} and in {}",
                      files.shards[static_cast<std::size_t>(other.shard)].path.filename().string(),
                      files.shards.back().path.filename().string()));
      continue;
    }
    TensorLocation location;
    location.name = tensor.name;
    location.dtype_word = tensor.dtype_word;
    location.dtype = tensor.dtype;
    location.shape = tensor.shape;
    location.shard = shard;
    location.offset = header.data_offset + tensor.begin;
    location.bytes = tensor.end - tensor.begin;
    files.tensors.push_back(std::move(location));
  }
}

std::string shard_name(const CheckpointFiles& files, const TensorLocation& tensor) {
  return files.shards[static_cast<std::size_t>(tensor.shard)].path.filename().string();
}

void compare_with_index(const Index& index, const std::set<std::string>& broken,
                        CheckpointFiles& files, ProblemList& problems) {
  std::uint64_t bytes = 0;
  for (const TensorLocation& tensor : files.tensors) {
    bytes += tensor.bytes;
    if (index.weight_map.count(tensor.name) == 0) {
      problems.add(ProblemKind::kIndexMismatch, tensor.name,
                   fmt::format("is in {}, but not in the index", shard_name(files, tensor)));
    }
  }
  for (const auto& [name, file] : index.weight_map) {
    const TensorLocation* tensor = files.find(name);
    if (tensor != nullptr && shard_name(files, *tensor) == file) {
      continue;
    }
    if (broken.count(file) != 0) {
      files.unreadable.insert(name);
      continue;
    }
    problems.add(ProblemKind::kIndexMismatch, name,
                 tensor == nullptr ? fmt::format("the index puts it in {}, which has it not", file)
                                   : fmt::format("the index puts it in {}, it is in {}", file,
                                                 shard_name(files, *tensor)));
  }
  if (broken.empty() && index.total_size >= 0 &&
      static_cast<std::uint64_t>(index.total_size) != bytes) {
    problems.add(ProblemKind::kIndexMismatch, std::string(kIndexName),
                 fmt::format("metadata.total_size is {}, the tensors have {} bytes",
                             index.total_size, bytes));
  }
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool has_config(const fs::path& folder) {
  std::error_code error;
  return fs::exists(fs::symlink_status(folder / "config.json", error));
}

}  // namespace

const TensorLocation* CheckpointFiles::find(const std::string& name) const {
  const auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : &tensors[it->second];
}

Result<fs::path> resolve_checkpoint(const fs::path& path) {
  if (!is_folder(path)) {
    return not_found(
        "{}: no such folder; expected a folder with config.json or a Hugging Face "
        "cache folder models--ORGANISATION--NAME",
        path.string());
  }
  if (has_config(path)) {
    return path;
  }
  const fs::path snapshots = path / "snapshots";
  if (!is_folder(snapshots)) {
    return not_found("{}: has neither config.json nor snapshots/", path.string());
  }
  const Result<std::string> ref = read_text_file(path / "refs" / "main", 4096);
  if (ref.ok()) {
    const std::string revision = ref->substr(0, ref->find_first_of(" \r\n"));
    if (is_plain_name(revision) && has_config(snapshots / revision)) {
      return snapshots / revision;
    }
    return not_found(
        "{}: refs/main names revision '{}', but snapshots/ has no such folder with "
        "config.json",
        path.string(), revision);
  }
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(snapshots, error), end; !error && it != end; it.increment(error)) {
    if (has_config(it->path())) {
      found.push_back(it->path());
    }
  }
  if (found.size() == 1) {
    return found.front();
  }
  return not_found("{}: no refs/main, and {} snapshots with config.json; name one snapshot folder",
                   path.string(), found.size());
}

CheckpointFiles scan_checkpoint(const fs::path& root, ProblemList& problems) {
  CheckpointFiles files;
  files.root = root;
  const std::optional<Index> index = read_index(root, problems);
  std::set<std::string> broken;
  for (const std::string& name : shard_names(root, index, problems)) {
    const ReadHeader shard = read_shard(root / name, name, problems);
    ShardFile file;
    file.path = root / name;
    file.bytes = shard.file_bytes;
    file.n_tensors =
        shard.header.has_value() ? static_cast<std::int64_t>(shard.header->tensors.size()) : 0;
    files.shards.push_back(std::move(file));
    if (shard.header.has_value()) {
      add_tensors(*shard.header, static_cast<int>(files.shards.size()) - 1, files, problems);
    } else {
      broken.insert(name);
    }
  }
  if (index.has_value()) {
    compare_with_index(*index, broken, files, problems);
  }
  return files;
}

Result<std::string> read_text_file(const fs::path& path, std::uint64_t max_bytes) {
  TANDEM_ASSIGN(ReadFile file, ReadFile::open(path));
  if (file.bytes() > max_bytes) {
    return resource_exhausted("{}: {} bytes, the limit is {}", path.string(), file.bytes(),
                              max_bytes);
  }
  std::string text(file.bytes(), '\0');
  TANDEM_TRY(file.read_at(
      0, std::span<std::uint8_t>(reinterpret_cast<std::uint8_t*>(text.data()), text.size())));
  if (is_lfs_pointer(text)) {
    return data_loss("{}: {}", path.string(), kLfsAdvice);
  }
  return text;
}

}  // namespace tandem::checkpoint
