// ShardReader: streams the data of all shards once, some shards at a time, and hands each tensor's
// part to a sink. Shared by loading (sink = the rank's memory) and checking (no sink).
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "compute/device/device.h"
#include "model/checkpoint/file.h"
#include "model/checkpoint/index.h"
#include "model/checkpoint/problem.h"
#include "model/checkpoint/tensor_spec.h"
#include "model/checkpoint/weight_store.h"

namespace tandem::checkpoint {

// One tensor to read.
struct ReadJob {
  const TensorLocation* location = nullptr;
  const TensorSpec* spec = nullptr;
  Slice slice;
  // Where the slice goes: slice.bytes(), or 4 bytes an element for integer tensors. nullptr: the
  // values are only checked.
  std::uint8_t* out = nullptr;
  // Copies to `out` if the host cannot write there itself.
  device::Device* device = nullptr;
};

class ShardReader {
 public:
  ShardReader(const CheckpointFiles& files, std::vector<ReadJob> jobs,
              std::function<void(const LoadProgress&)> progress);

  // Reads everything; bad values and failed reads go to `problems`, in the order of the jobs.
  void run(int n_threads, ProblemList& problems);

 private:
  void work();
  void read_shard(std::size_t shard);
  Status read_job(ReadFile& file, const ReadJob& job, std::vector<std::uint8_t>& staging,
                  std::string& bad_value);
  void add_done(std::int64_t bytes, int shards);

  const CheckpointFiles& files_;
  std::vector<std::vector<ReadJob>> by_shard_;  // in order of offset
  std::vector<ProblemList> problems_;           // one per shard: no lock, stable order
  std::atomic<std::size_t> next_shard_ = 0;
  std::function<void(const LoadProgress&)> progress_;
  std::mutex mutex_;
  LoadProgress state_;            // under mutex_
  std::int64_t next_report_ = 0;  // under mutex_
};

}  // namespace tandem::checkpoint
