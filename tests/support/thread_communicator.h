// Ranks as threads of one process, for tests: collectives meet at a barrier, sums are in order of
// rank. abort() throws JobAborted out of every rank's current or next call.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "compute/comm/communicator.h"

namespace tandem::testing {

struct JobAborted : std::runtime_error {
  explicit JobAborted(int code) : std::runtime_error("job aborted"), exit_code(code) {}
  int exit_code;
};

// What the ranks share.
class ThreadJob {
 public:
  explicit ThreadJob(int n_ranks) : n_ranks_(n_ranks), parts_(static_cast<std::size_t>(n_ranks)) {}

  int n_ranks() const { return n_ranks_; }

  // All ranks arrive, then all leave.
  void meet() {
    std::unique_lock lock(mutex_);
    throw_if_aborted();
    const std::uint64_t round = round_;
    if (++n_arrived_ == n_ranks_) {
      n_arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    changed_.wait(lock, [&] { return round_ != round || aborted_; });
    throw_if_aborted();
  }

  // Where a rank shows its data to the others between two meetings.
  const void*& part(int rank) { return parts_[static_cast<std::size_t>(rank)]; }

  void abort(int exit_code) {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    exit_code_ = exit_code;
    changed_.notify_all();
  }

 private:
  void throw_if_aborted() const {
    if (aborted_) {
      throw JobAborted(exit_code_);
    }
  }

  int n_ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_arrived_ = 0;
  std::uint64_t round_ = 0;
  bool aborted_ = false;
  int exit_code_ = 0;
  std::vector<const void*> parts_;
};

class ThreadCommunicator final : public comm::Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadJob> job, int rank)
      : job_(std::move(job)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return job_->n_ranks(); }

  void all_reduce_sum(std::span<float> values) override {
    job_->part(rank_) = values.data();
    job_->meet();
    std::vector<float> sum(values.size(), 0.0F);
    for (int rank = 0; rank < size(); ++rank) {
      const auto* other = static_cast<const float*>(job_->part(rank));
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] = rank == 0 ? other[i] : sum[i] + other[i];
      }
    }
    job_->meet();
    std::copy(sum.begin(), sum.end(), values.begin());
  }

  void all_gather(std::span<const float> in, std::span<float> out) override {
    job_->part(rank_) = in.data();
    job_->meet();
    for (int rank = 0; rank < size(); ++rank) {
      const auto* other = static_cast<const float*>(job_->part(rank));
      std::copy(other, other + in.size(),
                out.begin() + static_cast<std::ptrdiff_t>(in.size()) * rank);
    }
    job_->meet();
  }

  void broadcast(std::vector<std::uint8_t>& bytes) override {
    job_->part(rank_) = &bytes;
    job_->meet();
    if (rank_ != 0) {
      bytes = *static_cast<const std::vector<std::uint8_t>*>(job_->part(0));
    }
    job_->meet();
  }

  void barrier() override { job_->meet(); }

  [[noreturn]] void abort(int exit_code) override {
    job_->abort(exit_code);
    throw JobAborted(exit_code);
  }

 private:
  std::shared_ptr<ThreadJob> job_;
  int rank_;
};

}  // namespace tandem::testing
