// NCCL's communicator against a fake library, and the verdicts on stuck steps.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "compute/comm/nccl_communicator.h"
#include "compute/comm/stuck_verdict.h"
#include "tests/support/thread_communicator.h"

namespace tandem::comm {
namespace {

NcclLibrary fake() {
  const auto nccl = load_nccl(TANDEM_FAKE_NCCL);
  EXPECT_TRUE(nccl.ok()) << nccl.status().to_string();
  return *nccl;
}

void set_fake(int error, int abort_hangs) {
  void* library = ::dlopen(TANDEM_FAKE_NCCL, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  reinterpret_cast<void (*)(int, int)>(::dlsym(library, "fake_nccl_set"))(error, abort_hangs);
}

// Runs work(rank's communicator, marks) on two ranks at once.
template <typename Work>
void on_two_ranks(Work work) {
  const NcclLibrary nccl = fake();
  auto job = std::make_shared<testing::ThreadJob>(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      testing::ThreadCommunicator inner(job, rank);
      int marks = 0;
      const auto made = make_nccl_communicator(nccl, inner, {nullptr, [&marks] { ++marks; }});
      ASSERT_TRUE(made.ok()) << made.status().to_string();
      work(**made, marks);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(NcclCommunicator, SumsAndGathersOverRanks) {
  on_two_ranks([](NcclCommunicator& ranks, const int& marks) {
    EXPECT_EQ(ranks.version(), "2.28.3");
    const auto own = static_cast<float>(ranks.rank());
    std::vector<float> values = {1 + own, 10, own};
    ranks.all_reduce_sum(values);
    EXPECT_EQ(values, (std::vector<float>{3, 20, 1}));
    const std::vector<float> part = {own, 7};
    std::vector<float> all(4);
    ranks.all_gather(part, all);
    EXPECT_EQ(all, (std::vector<float>{0, 7, 1, 7}));
    EXPECT_EQ(marks, 2);
    EXPECT_EQ(ranks.transport_error(), "");
  });
}

TEST(NcclCommunicator, ReportsErrorsOfTheTransport) {
  set_fake(6, 0);
  on_two_ranks([](NcclCommunicator& ranks, const int&) {
    EXPECT_EQ(ranks.transport_error(),
              "remote process exited or there was a network error (socket closed by peer)");
  });
  set_fake(0, 0);
}

TEST(NcclCommunicator, EndsThoughAbortHangs) {
  set_fake(0, 1);
  const auto begin = std::chrono::steady_clock::now();
  on_two_ranks([](NcclCommunicator&, const int&) {});
  const auto took = std::chrono::steady_clock::now() - begin;
  set_fake(0, 0);
  EXPECT_GE(took, std::chrono::milliseconds(1900));
  EXPECT_LT(took, std::chrono::seconds(20));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // lets the helpers end
}

TEST(NcclLibrary, NamesWhatIsMissing) {
  const auto absent = load_nccl("libno-such-nccl.so");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.status().message().find("libno-such-nccl.so"), std::string::npos);
  const auto other = load_nccl("libm.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("ncclGetVersion"), std::string::npos);
}

TEST(StuckVerdict, NamesTheCause) {
  const std::vector<RankProgress> same = {{5, 90}, {5, 90}};
  const std::vector<RankProgress> steps = {{5, 90}, {6, 90}};
  const std::vector<RankProgress> behind = {{5, 90}, {5, 88}};
  EXPECT_EQ(diagnose_stuck_step(0, same, "remote error").verdict, Verdict::kFabric);
  EXPECT_NE(diagnose_stuck_step(0, same, "remote error").text.find("remote error"),
            std::string::npos);
  EXPECT_EQ(diagnose_stuck_step(0, {}, "").verdict, Verdict::kFabric);
  EXPECT_EQ(diagnose_stuck_step(0, same, "").verdict, Verdict::kFabric);
  EXPECT_EQ(diagnose_stuck_step(0, steps, "").verdict, Verdict::kDesync);
  const Diagnosis kernel = diagnose_stuck_step(0, behind, "");
  EXPECT_EQ(kernel.verdict, Verdict::kKernel);
  EXPECT_NE(kernel.text.find("GPU of rank 1"), std::string::npos);
  EXPECT_EQ(verdict_name(Verdict::kDesync), "desync");
}

}  // namespace
}  // namespace tandem::comm
