// How fast one rank's weights come into memory, against reading the same files into a small buffer.
// Usage: load_bench [--smoke] [CHECKPOINT [RANK WORLD]]. Without a checkpoint it writes a synthetic
// one under the system's temporary folder. Before it times anything it checks that two loads give
// the same bytes. Files may come from the page cache on the first pass; loads drop it behind them,
// so later passes read the disk.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "model/checkpoint/file.h"
#include "model/v4/open_model.h"
#include "model/v4/synth.h"

namespace {

using tandem::Result;
using tandem::checkpoint::LoadOptions;
using tandem::checkpoint::ReadFile;
using tandem::checkpoint::ShardFile;
using tandem::checkpoint::WeightStore;
using tandem::v4::OpenedModel;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "load_bench: %s\n", message.c_str());
  std::exit(1);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print_rate(const std::string& what, std::int64_t bytes, double seconds) {
  std::printf("%-28s %8.2f GB %8.3f s %8.2f GB/s\n", what.c_str(), static_cast<double>(bytes) / 1e9,
              seconds, static_cast<double>(bytes) / 1e9 / seconds);
}

WeightStore load(const OpenedModel& model, tandem::device::Device& device,
                 const LoadOptions& options) {
  Result<WeightStore> store = tandem::v4::load_weights(model, device, options);
  if (!store.ok()) {
    fail(store.status().message());
  }
  return std::move(store).value();
}

void check_same(const OpenedModel& model, LoadOptions options) {
  const auto device = tandem::device::make_cpu_device();
  const WeightStore one = load(model, *device, options);
  options.n_threads = 1;
  const WeightStore two = load(model, *device, options);
  for (const auto& spec : model.table) {
    const auto& a = one.get(spec.name);
    const auto& b = two.get(spec.name);
    if (a.bytes != b.bytes || std::memcmp(a.data, b.data, static_cast<std::size_t>(a.bytes)) != 0) {
      fail(spec.name + " differs between two loads");
    }
  }
}

void time_plain_read(const OpenedModel& model) {
  std::vector<std::uint8_t> buffer(std::size_t{4} << 20);
  std::int64_t total = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const ShardFile& shard : model.files.shards) {
    Result<ReadFile> file = ReadFile::open(shard.path);
    if (!file.ok()) {
      fail(file.status().message());
    }
    file->expect_sequential();
    for (std::uint64_t at = 0; at < file->bytes(); at += buffer.size()) {
      const std::size_t n = std::min<std::uint64_t>(buffer.size(), file->bytes() - at);
      const tandem::Status status = file->read_at(at, {buffer.data(), n});
      if (!status.ok()) {
        fail(status.message());
      }
    }
    total += static_cast<std::int64_t>(file->bytes());
  }
  print_rate("plain read of all files", total, seconds_since(start));
}

void time_load(const OpenedModel& model, LoadOptions options, int n_threads) {
  options.n_threads = n_threads;
  const auto device = tandem::device::make_cpu_device();
  const auto start = std::chrono::steady_clock::now();
  const WeightStore store = load(model, *device, options);
  print_rate(fmt::format("load, {} thread{}", n_threads, n_threads == 1 ? "" : "s"), store.bytes(),
             seconds_since(start));
}

std::filesystem::path write_model(bool smoke, const std::filesystem::path& folder) {
  tandem::v4::SynthOptions options;
  options.config = smoke ? tandem::v4::tiny_config(tandem::v4::DraftKind::kMtp)
                         : tandem::v4::flash_config(tandem::v4::DraftKind::kNone, 4);
  options.config.n_experts = smoke ? 8 : 64;
  const tandem::Status status = tandem::v4::write_synthetic_model(folder, options);
  if (!status.ok()) {
    fail(status.message());
  }
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
  const int first = smoke ? 2 : 1;
  LoadOptions options;
  if (argc > first + 2) {
    options.rank = std::atoi(argv[first + 1]);
    options.world = std::atoi(argv[first + 2]);
  }
  std::string scratch = (std::filesystem::temp_directory_path() / "load-bench-XXXXXX").string();
  const bool own = argc <= first;
  if (own && mkdtemp(scratch.data()) == nullptr) {
    fail("no temporary folder");
  }
  const std::filesystem::path path =
      own ? write_model(smoke, std::filesystem::path(scratch) / "model") : argv[first];
  const Result<OpenedModel> model = tandem::v4::open_model(path, options.world);
  if (!model.ok()) {
    fail(model.status().message());
  }
  check_same(*model, options);
  time_plain_read(*model);
  for (const int n_threads : {1, 2, 4}) {
    time_load(*model, options, n_threads);
  }
  if (own) {
    std::filesystem::remove_all(scratch);
  }
  return 0;
}
