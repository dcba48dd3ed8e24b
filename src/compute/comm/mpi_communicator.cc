#include "compute/comm/mpi_communicator.h"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "compute/comm/backoff.h"
#include "foundation/base/check.h"

namespace tandem::comm {
namespace {

constexpr int kControlTag = 1;
constexpr int kSumTag = 2;
constexpr int kGatherTag = 3;
constexpr int kBarrierTag = 4;

// Counts in MPI are int.
int to_count(std::size_t n) {
  TANDEM_CHECK(n <= static_cast<std::size_t>(INT_MAX), "an MPI message is limited to 2^31 - 1");
  return static_cast<int>(n);
}

// Every wait goes through here, so that no rank ever spins for long.
void wait_all(std::span<MPI_Request> requests) {
  Backoff backoff;
  for (;;) {
    int done = 0;
    MPI_Testall(to_count(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done != 0) {
      return;
    }
    backoff.pause();
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  ~MpiCommunicator() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // Each rank sums one slice of all ranks' values in order of rank and sends it to the others:
  // the same additions in the same order whoever reads the result.
  void all_reduce_sum(std::span<float> values) override {
    if (size_ == 1 || values.empty()) {
      return;
    }
    if (size_ == 2) {
      sum_of_two(values);
      return;
    }
    const std::size_t slice = (values.size() + ranks() - 1) / ranks();
    received_.resize(slice * ranks());
    send_slices(values, slice);
    const std::span<float> mine = slice_of(values, slice, rank_);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      float sum = received_[i];
      for (std::size_t r = 1; r < ranks(); ++r) {
        sum += received_[r * slice + i];
      }
      mine[i] = sum;
    }
    share_slices(values, slice);
  }

  void all_gather(std::span<const float> in, std::span<float> out) override {
    TANDEM_CHECK(out.size() == in.size() * ranks(), "all_gather: out must hold one part per rank");
    const auto own = static_cast<std::size_t>(rank_) * in.size();
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(own));
    requests_.clear();
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) {
        const auto at = static_cast<std::size_t>(r) * in.size();
        post_receive(out.subspan(at, in.size()), r, kGatherTag);
        post_send(in, r, kGatherTag);
      }
    }
    wait_all(requests_);
  }

  void broadcast(std::vector<std::uint8_t>& bytes) override {
    if (size_ == 1) {
      return;
    }
    if (rank_ != 0) {
      receive_control(bytes);
      return;
    }
    requests_.clear();
    for (int r = 1; r < size_; ++r) {
      MPI_Isend(bytes.data(), to_count(bytes.size()), MPI_BYTE, r, kControlTag, MPI_COMM_WORLD,
                &requests_.emplace_back());
    }
    wait_all(requests_);
  }

  // All to all with empty messages: not MPI_Barrier, which spins.
  void barrier() override {
    requests_.clear();
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) {
        post_receive({}, r, kBarrierTag);
        post_send({}, r, kBarrierTag);
      }
    }
    wait_all(requests_);
  }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(size_); }

  static std::span<float> slice_of(std::span<float> values, std::size_t slice, int rank) {
    const std::size_t first = std::min(values.size(), slice * static_cast<std::size_t>(rank));
    return values.subspan(first, std::min(slice, values.size() - first));
  }

  void post_receive(std::span<float> to, int from_rank, int tag) {
    MPI_Irecv(to.data(), to_count(to.size()), MPI_FLOAT, from_rank, tag, MPI_COMM_WORLD,
              &requests_.emplace_back());
  }

  void post_send(std::span<const float> from, int to_rank, int tag) {
    MPI_Isend(from.data(), to_count(from.size()), MPI_FLOAT, to_rank, tag, MPI_COMM_WORLD,
              &requests_.emplace_back());
  }

  // One exchange is quicker than two; a + b has the same bits as b + a.
  void sum_of_two(std::span<float> values) {
    received_.resize(values.size());
    requests_.clear();
    post_receive(received_, 1 - rank_, kSumTag);
    post_send(values, 1 - rank_, kSumTag);
    wait_all(requests_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += received_[i];
    }
  }

  // Afterwards received_[r * slice ...] holds rank r's values of this rank's slice.
  void send_slices(std::span<float> values, std::size_t slice) {
    const std::span<float> mine = slice_of(values, slice, rank_);
    const std::span<float> received(received_);
    requests_.clear();
    for (int r = 0; r < size_; ++r) {
      const auto part = received.subspan(static_cast<std::size_t>(r) * slice, mine.size());
      if (r == rank_) {
        std::copy(mine.begin(), mine.end(), part.begin());
      } else {
        post_receive(part, r, kSumTag);
        post_send(slice_of(values, slice, r), r, kSumTag);
      }
    }
    wait_all(requests_);
  }

  void share_slices(std::span<float> values, std::size_t slice) {
    const std::span<float> mine = slice_of(values, slice, rank_);
    requests_.clear();
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) {
        post_receive(slice_of(values, slice, r), r, kGatherTag);
        post_send(mine, r, kGatherTag);
      }
    }
    wait_all(requests_);
  }

  // The length is not known before the message is there.
  void receive_control(std::vector<std::uint8_t>& bytes) const {
    Backoff backoff;
    MPI_Message message{};
    MPI_Status status{};
    for (;;) {
      int found = 0;
      MPI_Improbe(0, kControlTag, MPI_COMM_WORLD, &found, &message, &status);
      if (found != 0) {
        break;
      }
      backoff.pause();
    }
    int n_bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &n_bytes);
    bytes.resize(static_cast<std::size_t>(n_bytes));
    std::array<MPI_Request, 1> request{};
    MPI_Imrecv(bytes.data(), n_bytes, MPI_BYTE, &message, request.data());
    wait_all(request);
  }

  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<float> received_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi_communicator() {
  int done = 0;
  MPI_Initialized(&done);
  if (done != 0) {
    return failed_precondition("MPI is initialised already; make one communicator per process");
  }
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return failed_precondition(
        "the MPI library gives thread level {}, the engine thread needs at least {} "
        "(MPI_THREAD_SERIALIZED); install an Open MPI built with threads",
        level, MPI_THREAD_SERIALIZED);
  }
  return std::unique_ptr<Communicator>(std::make_unique<MpiCommunicator>());
}

}  // namespace tandem::comm
