#include "model/checkpoint/shard_reader.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "model/checkpoint/value_check.h"

namespace tandem::checkpoint {
namespace {

using tensor::DType;

constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20;
constexpr std::int64_t kReports = 200;  // progress calls of a whole load

bool is_integer(DType dtype) {
  return dtype == DType::kI32 || dtype == DType::kI64;
}

void copy_as_i32(DType dtype, std::span<const std::uint8_t> bytes, std::uint8_t* out) {
  if (dtype == DType::kI32) {
    std::memcpy(out, bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < bytes.size() / 8; ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, bytes.data() + 8 * i, 8);
    const auto narrow = static_cast<std::int32_t>(value);  // the checker refuses what does not fit
    std::memcpy(out + 4 * i, &narrow, 4);
  }
}

// Where a job's bytes go: straight to `out`, or through a buffer to memory that the host cannot
// write.
class Target {
 public:
  explicit Target(const ReadJob& job)
      : out_(job.out),
        device_(job.device != nullptr && !job.device->host_visible() ? job.device : nullptr) {}

  bool wanted() const { return out_ != nullptr; }

  // Room for the next `bytes`, to be filled before done().
  std::uint8_t* next(std::size_t bytes) {
    if (device_ == nullptr) {
      return out_;
    }
    buffer_.resize(bytes);
    return buffer_.data();
  }

  void done(std::size_t bytes) {
    if (device_ != nullptr) {
      device_->upload(out_, buffer_.data(), static_cast<std::int64_t>(bytes));
    }
    out_ += bytes;
  }

 private:
  std::uint8_t* out_;
  device::Device* device_;
  std::vector<std::uint8_t> buffer_;
};

// The rows of a job in the file, in chunks that fit the staging buffer.
struct Chunking {
  std::int64_t row_bytes = 0;  // in the file
  std::int64_t rows_at_once = 0;
};

Chunking chunking_of(const ReadJob& job, DType dtype) {
  Chunking chunking;
  chunking.row_bytes = job.slice.row_bytes;
  if (is_integer(dtype)) {  // the file may have the other integer width
    chunking.row_bytes =
        job.slice.row_bytes / tensor::dtype_bytes(job.spec->dtype) * tensor::dtype_bytes(dtype);
  }
  chunking.rows_at_once =
      std::max<std::int64_t>(1, kChunkBytes / std::max<std::int64_t>(1, chunking.row_bytes));
  return chunking;
}

// The columns of this rank out of `rows` whole rows.
void copy_columns(const Slice& slice, std::span<const std::uint8_t> chunk, std::int64_t rows,
                  std::int64_t row_bytes, ValueChecker& checker, Target& target) {
  const auto width = static_cast<std::size_t>(slice.column_bytes);
  const std::size_t size = static_cast<std::size_t>(rows) * width;
  std::uint8_t* out = target.wanted() ? target.next(size) : nullptr;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::uint8_t* part = chunk.data() + r * row_bytes + slice.column_begin;
    checker.feed({part, width});
    if (out != nullptr) {
      std::memcpy(out + static_cast<std::size_t>(r) * width, part, width);
    }
  }
  if (out != nullptr) {
    target.done(size);
  }
}

}  // namespace

ShardReader::ShardReader(const CheckpointFiles& files, std::vector<ReadJob> jobs,
                         std::function<void(const LoadProgress&)> progress)
    : files_(files),
      by_shard_(files.shards.size()),
      problems_(files.shards.size()),
      progress_(std::move(progress)) {
  for (ReadJob& job : jobs) {
    state_.total_bytes += job.slice.bytes();
    by_shard_[static_cast<std::size_t>(job.location->shard)].push_back(std::move(job));
  }
  for (std::vector<ReadJob>& shard : by_shard_) {
    std::sort(shard.begin(), shard.end(), [](const ReadJob& a, const ReadJob& b) {
      return a.location->offset < b.location->offset;
    });
  }
  state_.total_shards = static_cast<int>(files.shards.size());
}

void ShardReader::run(int n_threads, ProblemList& problems) {
  const int count = std::clamp(n_threads, 1, std::max(1, state_.total_shards));
  std::vector<std::thread> helpers;
  for (int i = 1; i < count; ++i) {
    helpers.emplace_back([this] { work(); });
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  for (const ProblemList& list : problems_) {
    problems.append(list);
  }
}

void ShardReader::work() {
  for (std::size_t shard = next_shard_++; shard < by_shard_.size(); shard = next_shard_++) {
    read_shard(shard);
    add_done(0, 1);
  }
}

void ShardReader::read_shard(std::size_t shard) {
  const std::string name = files_.shards[shard].path.filename().string();
  if (by_shard_[shard].empty()) {
    return;
  }
  Result<ReadFile> file = ReadFile::open(files_.shards[shard].path);
  if (!file.ok()) {
    problems_[shard].add(ProblemKind::kUnreadable, name, file.status().message());
    return;
  }
  file->expect_sequential();
  std::vector<std::uint8_t> staging;
  for (const ReadJob& job : by_shard_[shard]) {
    std::string bad_value;
    const Status status = read_job(*file, job, staging, bad_value);
    if (!status.ok()) {
      const bool is_short = status.code() == StatusCode::kDataLoss;
      problems_[shard].add(is_short ? ProblemKind::kTruncated : ProblemKind::kUnreadable, name,
                           fmt::format("{}: {}", job.spec->name, status.message()));
      return;  // the rest of this file would fail the same way
    }
    if (!bad_value.empty()) {
      problems_[shard].add(ProblemKind::kBadValue, job.spec->name, bad_value);
    }
  }
}

Status ShardReader::read_job(ReadFile& file, const ReadJob& job, std::vector<std::uint8_t>& staging,
                             std::string& bad_value) {
  const DType dtype = job.location->dtype.value_or(job.spec->dtype);
  const Chunking chunking = chunking_of(job, dtype);
  Target target(job);
  const bool in_place = target.wanted() && job.slice.contiguous() && !is_integer(dtype);
  ValueChecker checker(dtype, job.spec->integer_bound);
  for (std::int64_t row = 0; row < job.slice.row_count; row += chunking.rows_at_once) {
    const std::int64_t rows = std::min(chunking.rows_at_once, job.slice.row_count - row);
    const auto bytes = static_cast<std::size_t>(rows * chunking.row_bytes);
    const std::uint64_t offset =
        job.location->offset +
        static_cast<std::uint64_t>((job.slice.row_begin + row) * chunking.row_bytes);
    if (!in_place && staging.size() < bytes) {
      staging.resize(bytes);
    }
    const std::span<std::uint8_t> chunk(in_place ? target.next(bytes) : staging.data(), bytes);
    TANDEM_TRY(file.read_at(offset, chunk));
    if (is_integer(dtype) || job.slice.contiguous()) {
      checker.feed(chunk);
    }
    if (is_integer(dtype) && target.wanted()) {
      const std::size_t size = bytes / static_cast<std::size_t>(tensor::dtype_bytes(dtype)) * 4;
      copy_as_i32(dtype, chunk, target.next(size));
      target.done(size);
    } else if (in_place) {
      target.done(bytes);
    } else if (!job.slice.contiguous()) {
      copy_columns(job.slice, chunk, rows, chunking.row_bytes, checker, target);
    }
    add_done(rows * job.slice.column_bytes, 0);
  }
  if (!checker.ok()) {
    bad_value = checker.message();
  }
  return ok_status();
}

void ShardReader::add_done(std::int64_t bytes, int shards) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.done_bytes += bytes;
  state_.done_shards += shards;
  const bool last = state_.done_shards == state_.total_shards;
  if (progress_ && (state_.done_bytes >= next_report_ || last)) {
    next_report_ = state_.done_bytes + state_.total_bytes / kReports + 1;
    progress_(state_);
  }
}

}  // namespace tandem::checkpoint
