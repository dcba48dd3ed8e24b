// A libnccl.so.2 for tests: ranks are threads of one process and memory is the host's. It can
// report an error of its transport, and its abort can hang, as a real one was seen to.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Job {
  std::mutex mutex;
  std::condition_variable changed;
  int n_ranks = 0;
  int n_waiting = 0;
  int round = 0;
  std::vector<const float*> in;
  int error = 0;
  std::atomic<bool> abort_hangs = false;
};

struct Rank {
  Job* job;
  int rank;
};

Job job;

// Waits for all ranks.
void meet(std::unique_lock<std::mutex>& lock) {
  const int round = job.round;
  if (++job.n_waiting == job.n_ranks) {
    job.n_waiting = 0;
    ++job.round;
    job.changed.notify_all();
    return;
  }
  job.changed.wait(lock, [&] { return job.round != round; });
}

}  // namespace

extern "C" {

struct FakeId {
  char bytes[128];
};

void fake_nccl_set(int error, int abort_hangs) {
  job.error = error;
  job.abort_hangs = abort_hangs != 0;
}

int ncclGetVersion(int* version) {
  *version = 22803;
  return 0;
}

int ncclGetUniqueId(FakeId* id) {
  std::memset(id->bytes, 42, sizeof(id->bytes));
  return 0;
}

int ncclCommInitRank(void** comm, int n_ranks, FakeId id, int rank) {
  if (id.bytes[0] != 42 || id.bytes[127] != 42) {
    return 4;  // another rank's id never arrived
  }
  std::unique_lock<std::mutex> lock(job.mutex);
  job.n_ranks = n_ranks;
  job.in.resize(static_cast<std::size_t>(n_ranks));
  *comm = new Rank{&job, rank};
  meet(lock);
  return 0;
}

int ncclAllReduce(const void* in, void* out, std::size_t n, int type, int op, void* comm, void*) {
  if (type != 7 || op != 0) {
    return 4;
  }
  auto* rank = static_cast<Rank*>(comm);
  std::unique_lock<std::mutex> lock(job.mutex);
  job.in[static_cast<std::size_t>(rank->rank)] = static_cast<const float*>(in);
  meet(lock);
  std::vector<float> sum(n, 0.0F);
  for (const float* part : job.in) {
    for (std::size_t i = 0; i < n; ++i) {
      sum[i] += part[i];
    }
  }
  meet(lock);
  std::memcpy(out, sum.data(), n * sizeof(float));
  meet(lock);
  return 0;
}

int ncclAllGather(const void* in, void* out, std::size_t n, int type, void* comm, void*) {
  if (type != 7) {
    return 4;
  }
  auto* rank = static_cast<Rank*>(comm);
  std::unique_lock<std::mutex> lock(job.mutex);
  job.in[static_cast<std::size_t>(rank->rank)] = static_cast<const float*>(in);
  meet(lock);
  for (std::size_t r = 0; r < job.in.size(); ++r) {
    std::memcpy(static_cast<float*>(out) + r * n, job.in[r], n * sizeof(float));
  }
  meet(lock);
  return 0;
}

int ncclCommGetAsyncError(void*, int* error) {
  *error = job.error;
  return 0;
}

int ncclCommAbort(void* comm) {
  while (job.abort_hangs) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  delete static_cast<Rank*>(comm);
  return 0;
}

const char* ncclGetErrorString(int error) {
  return error == 6 ? "remote process exited or there was a network error" : "fake error";
}

const char* ncclGetLastError(void*) {
  return "socket closed by peer";
}
}
