// Run under mpirun with a case name; every rank checks what it sees and exits 1 on a difference.
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "compute/comm/mpi_communicator.h"
#include "foundation/base/random.h"

namespace {

using tandem::comm::Communicator;

void expect(bool condition, const Communicator& comm, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "rank %d: %s\n", comm.rank(), what);
    std::_Exit(1);
  }
}

// What rank r contributes: magnitudes far apart, so that the order of additions shows.
std::vector<float> values_of(int rank, std::size_t n) {
  tandem::Random random(static_cast<std::uint64_t>(rank) + 1);
  std::vector<float> values(n);
  for (float& value : values) {
    const double magnitude = std::pow(10.0, random.uniform() * 8.0 - 4.0);
    value = static_cast<float>((random.uniform() - 0.5) * magnitude);
  }
  return values;
}

void check_sum(Communicator& comm, std::size_t n) {
  std::vector<float> expected = values_of(0, n);
  for (int r = 1; r < comm.size(); ++r) {
    const std::vector<float> more = values_of(r, n);
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] += more[i];
    }
  }
  std::vector<float> values = values_of(comm.rank(), n);
  comm.all_reduce_sum(values);
  expect(n == 0 || std::memcmp(values.data(), expected.data(), n * sizeof(float)) == 0, comm,
         "all_reduce_sum is not the sum in order of rank");
}

void check_gather(Communicator& comm, std::size_t n) {
  std::vector<float> out(n * static_cast<std::size_t>(comm.size()));
  comm.all_gather(values_of(comm.rank(), n), out);
  for (int r = 0; r < comm.size(); ++r) {
    const std::vector<float> part = values_of(r, n);
    const float* found = out.data() + static_cast<std::size_t>(r) * n;
    expect(std::memcmp(found, part.data(), n * sizeof(float)) == 0, comm, "all_gather differs");
  }
}

void check_broadcast(Communicator& comm, std::size_t n) {
  std::vector<std::uint8_t> expected(n);
  for (std::size_t i = 0; i < n; ++i) {
    expected[i] = static_cast<std::uint8_t>(i * 7 + 1);
  }
  std::vector<std::uint8_t> bytes = comm.rank() == 0 ? expected : std::vector<std::uint8_t>{9};
  comm.broadcast(bytes);
  expect(bytes == expected, comm, "broadcast differs");
}

void run_collectives(Communicator& comm) {
  for (const std::size_t n : {0U, 1U, 2U, 5U, 4096U, 300'001U}) {
    check_sum(comm, n);
    check_broadcast(comm, n);
    check_gather(comm, n + 1);
  }
  comm.barrier();
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Rank 0 says something once a second for three seconds; the others wait for it.
void run_idle(Communicator& comm) {
  comm.barrier();
  const double before = cpu_seconds();
  for (int i = 0; i < 3; ++i) {
    if (comm.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    check_broadcast(comm, 100);
  }
  const double share = (cpu_seconds() - before) / 3.0;
  std::fprintf(stderr, "rank %d: idle share of one core %.3f\n", comm.rank(), share);
  expect(share < 0.02, comm, "an idle rank uses more than 2% of a core");
}

void run_abort(Communicator& comm) {
  if (comm.rank() == 0) {
    comm.abort(7);
  }
  check_broadcast(comm, 1);  // never sent
}

}  // namespace

int main(int argc, char** argv) {
  auto comm = tandem::comm::make_mpi_communicator();
  if (!comm.ok() || argc != 2) {
    return 1;
  }
  expect((*comm)->size() > 1, **comm, "run me under mpirun with at least two ranks");
  expect(!tandem::comm::make_mpi_communicator().ok(), **comm, "MPI was initialised twice");
  const std::string_view name = argv[1];
  if (name == "collectives") {
    run_collectives(**comm);
  } else if (name == "idle") {
    run_idle(**comm);
  } else if (name == "abort") {
    run_abort(**comm);
  } else {
    return 1;
  }
  return 0;
}
