// When a step is queued, recorded and replayed. The recorder here runs what it recorded.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "compute/device/step_graphs.h"

namespace tandem::device {
namespace {

class FakeRecorder final : public GraphRecorder {
 public:
  class FakeGraph final : public Graph {
   public:
    FakeGraph(FakeRecorder& recorder, std::function<void()> work)
        : recorder_(recorder), work_(std::move(work)) {}
    ~FakeGraph() override { --recorder_.alive; }

    Status replay() override {
      work_();
      return ok_status();
    }

   private:
    FakeRecorder& recorder_;
    std::function<void()> work_;
  };

  Result<std::unique_ptr<Graph>> record(const std::function<void()>& queue_work) override {
    if (fails) {
      return internal_error("capture refused");
    }
    ++alive;
    return std::unique_ptr<Graph>(std::make_unique<FakeGraph>(*this, queue_work));
  }

  bool fails = false;
  int alive = 0;
};

TEST(StepGraphs, QueuesThenRecordsThenReplays) {
  FakeRecorder recorder;
  StepGraphs graphs(recorder, 64, 10);
  int runs = 0;
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(graphs.run({6, 1, 6, 0}, [&] { ++runs; }).ok());
    EXPECT_EQ(runs, i);  // every step runs exactly once, recorded or not
  }
  EXPECT_EQ(graphs.stats().n_direct, 1);
  EXPECT_EQ(graphs.stats().n_recorded, 1);
  EXPECT_EQ(graphs.stats().n_replayed, 4);
}

TEST(StepGraphs, KeepsShapesApart) {
  FakeRecorder recorder;
  StepGraphs graphs(recorder, 64, 10);
  std::vector<int> runs(4, 0);
  const StepShape shapes[4] = {{6, 1, 6, 0}, {6, 2, 6, 0}, {6, 1, 1, 0}, {6, 1, 6, 1}};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_TRUE(graphs.run(shapes[i], [&runs, i] { ++runs[i]; }).ok());
    }
  }
  EXPECT_EQ(runs, std::vector<int>(4, 3));
  EXPECT_EQ(graphs.stats().n_graphs, 4);
}

TEST(StepGraphs, LongStepsAreQueuedDirectly) {
  FakeRecorder recorder;
  StepGraphs graphs(recorder, 64, 10);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(graphs.run({65, 1, 1, 0}, [] {}).ok());
  }
  EXPECT_EQ(graphs.stats().n_direct, 3);
  EXPECT_EQ(graphs.stats().n_graphs, 0);
}

TEST(StepGraphs, DropsTheLongestUnused) {
  FakeRecorder recorder;
  StepGraphs graphs(recorder, 64, 2);
  const auto run = [&](std::int32_t n) { ASSERT_TRUE(graphs.run({n, 1, 1, 0}, [] {}).ok()); };
  for (const std::int32_t n : {1, 1, 2, 2, 1, 3}) {  // 2 is the longest unused when 3 comes
    run(n);
  }
  EXPECT_EQ(recorder.alive, 1);
  run(1);
  EXPECT_EQ(graphs.stats().n_recorded, 2);  // 1 was kept
  run(2);
  EXPECT_EQ(graphs.stats().n_direct, 4);  // 2 starts again
}

TEST(StepGraphs, ForgetsOnDemand) {
  FakeRecorder recorder;
  StepGraphs graphs(recorder, 64, 2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(graphs.run({1, 1, 1, 0}, [] {}).ok());
  }
  EXPECT_EQ(recorder.alive, 1);
  graphs.clear();
  EXPECT_EQ(recorder.alive, 0);
  ASSERT_TRUE(graphs.run({1, 1, 1, 0}, [] {}).ok());
  EXPECT_EQ(graphs.stats().n_direct, 2);
}

TEST(StepGraphs, ReportsWhatTheDriverSays) {
  FakeRecorder recorder;
  recorder.fails = true;
  StepGraphs graphs(recorder, 64, 2);
  int runs = 0;
  ASSERT_TRUE(graphs.run({1, 1, 1, 0}, [&] { ++runs; }).ok());
  const Status status = graphs.run({1, 1, 1, 0}, [&] { ++runs; });
  EXPECT_EQ(status.message(), "capture refused");
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace tandem::device
