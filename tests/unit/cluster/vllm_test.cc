#include <gmock/gmock.h>

#include <algorithm>

#include "operations/cluster/vllm_command.h"
#include "operations/cluster/vllm_pair.h"
#include "tests/unit/cluster/trees.h"

namespace tandem::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ClusterConfig vllm_config() {
  ClusterConfig config = spark_config();
  config.engine = "vllm";
  config.model = "deepseek-ai/DeepSeek-V4-Flash-0731";
  config.vllm.cache_dir = "/home/me/.cache/huggingface";
  config.head.gid_index = 3;
  config.worker.gid_index = 5;
  config.head.hca = "=rocep1s0f1,roceP2p1s0f1";
  config.port = 1;  // nobody answers there
  return config;
}

// The value behind a flag, or "-" if it is not there exactly once.
std::string value_of(const std::vector<std::string>& words, const std::string& flag) {
  const auto at = std::find(words.begin(), words.end(), flag);
  return std::count(words.begin(), words.end(), flag) == 1 && at + 1 != words.end() ? *(at + 1)
                                                                                    : "-";
}

TEST(VllmCommand, DerivedValuesFollowTheirSources) {
  ClusterConfig config = vllm_config();
  auto words = vllm_command(config, Role::kHead, 3).value();
  EXPECT_EQ(value_of(words, "--max-cudagraph-capture-size"), "36");  // 6 x (5 + 1)
  EXPECT_EQ(value_of(words, "--gpu-memory-utilization"), "0.835");
  config.vllm.max_sequences = 4;
  config.vllm.draft_tokens = 7;
  config.vllm.memory_percent_x10 = 80;
  words = vllm_command(config, Role::kHead, 3).value();
  EXPECT_EQ(value_of(words, "--max-cudagraph-capture-size"), "32");
  EXPECT_EQ(value_of(words, "--gpu-memory-utilization"), "0.080");
  EXPECT_THAT(value_of(words, "--speculative-config"), HasSubstr("\"num_speculative_tokens\":7"));
  config.vllm.draft_tokens = 0;
  words = vllm_command(config, Role::kHead, 3).value();
  EXPECT_EQ(value_of(words, "--speculative-config"), "-");
}

TEST(VllmCommand, RanksDifferOnlyWhereTheyMust) {
  const ClusterConfig config = vllm_config();
  const auto head = vllm_command(config, Role::kHead, 3).value();
  auto worker = vllm_command(config, Role::kWorker, 5).value();
  EXPECT_EQ(worker.back(), "--headless");
  worker.pop_back();
  ASSERT_EQ(head.size(), worker.size());
  std::vector<std::string> differences;
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] != worker[i]) {
      differences.push_back(head[i] + " / " + worker[i]);
    }
  }
  EXPECT_THAT(differences, ::testing::ElementsAre(
                               "VLLM_HOST_IP=192.168.100.1 / VLLM_HOST_IP=192.168.100.2",
                               "NCCL_SOCKET_IFNAME=enp1s0f1np1 / NCCL_SOCKET_IFNAME=enp1s0f0np0",
                               "TP_SOCKET_IFNAME=enp1s0f1np1 / TP_SOCKET_IFNAME=enp1s0f0np0",
                               "GLOO_SOCKET_IFNAME=enp1s0f1np1 / GLOO_SOCKET_IFNAME=enp1s0f0np0",
                               "NCCL_IB_GID_INDEX=3 / NCCL_IB_GID_INDEX=5", "0 / 1"));
}

TEST(VllmCommand, NoEmptyNcclVariable) {
  ClusterConfig config = vllm_config();
  config.head.hca.clear();
  const auto words = vllm_command(config, Role::kHead, -1).value();
  for (const std::string& word : words) {
    EXPECT_FALSE(word.rfind("NCCL_", 0) == 0 && word.back() == '=') << word;
    EXPECT_THAT(word, Not(HasSubstr("NCCL_IB_GID_INDEX")));
  }
}

TEST(VllmCommand, RefusesWhatCannotWork) {
  ClusterConfig config = vllm_config();
  config.api_keys_file = "/etc/tandem/keys";
  EXPECT_THAT(vllm_command(config, Role::kHead, 3).status().message(), HasSubstr("api_keys_file"));
  config = vllm_config();
  config.vllm.cache_dir.clear();
  EXPECT_THAT(vllm_command(config, Role::kHead, 3).status().message(), HasSubstr("cache_dir"));
  config = vllm_config();
  config.vllm.draft_tokens = 3;  // the image cuts it silently
  EXPECT_THAT(vllm_command(config, Role::kHead, 3).status().message(), HasSubstr("at least 5"));
  config = vllm_config();
  config.vllm.thinking = "lots";
  EXPECT_THAT(vllm_command(config, Role::kHead, 3).status().message(), HasSubstr("'lots'"));
}

class VllmPair : public ::testing::Test {
 protected:
  void SetUp() override {
    for (RecordedSystem* system : {&pair_.head_system, &pair_.worker_system}) {
      system->set_command("echo tandem", prints("tandem\n"));
      system->set_command("docker image inspect --format {{.Id}} " + pair_.config.vllm.image,
                          prints("sha256:aa\n"));
    }
  }

  StartOutcome start() {
    return start_vllm(pair_.config, pair_.head_system, pair_.worker_system,
                      [this](const std::string& line) { said_ += line + "\n"; });
  }

  void container(RecordedSystem& system, const std::string& state) {
    system.set_command("docker container inspect --format {{.State.Status}} tandem-vllm",
                       prints(state + "\n"));
  }

  static int runs_of(const RecordedSystem& system) {
    return static_cast<int>(
        std::count_if(system.ran().begin(), system.ran().end(),
                      [](const std::string& line) { return line.rfind("docker run ", 0) == 0; }));
  }

  Pair pair_{vllm_config()};
  std::string said_;
};

TEST_F(VllmPair, HeadThatRunsIsReportedAndNothingStarts) {
  container(pair_.head_system, "running");
  EXPECT_EQ(start().result, StartResult::kAlreadyRunning);
  EXPECT_EQ(runs_of(pair_.worker_system), 0);
}

TEST_F(VllmPair, LoneWorkerAndOtherImageAreRefused) {
  container(pair_.worker_system, "running");
  StartOutcome outcome = start();
  EXPECT_EQ(outcome.result, StartResult::kRefused);
  EXPECT_THAT(outcome.message, HasSubstr("without a head"));
  pair_.worker_system.set_command(
      "docker image inspect --format {{.Id}} " + pair_.config.vllm.image, prints("sha256:bb\n"));
  EXPECT_THAT(start().message, HasSubstr("image:"));
  EXPECT_EQ(runs_of(pair_.worker_system) + runs_of(pair_.head_system), 0);
}

TEST_F(VllmPair, WorkerThatCannotStartEndsItBeforeTheHead) {
  const StartOutcome outcome = start();  // `docker run` is not recorded: exit code 127
  EXPECT_EQ(outcome.result, StartResult::kFailed);
  EXPECT_THAT(outcome.message, HasSubstr("worker"));
  EXPECT_EQ(runs_of(pair_.worker_system), 1);
  EXPECT_EQ(runs_of(pair_.head_system), 0);
}

TEST_F(VllmPair, RankThatExitsIsNamedAndBothAreRemoved) {
  const auto& config = pair_.config;
  const auto line = [&](Role role, int gid) {
    return joined(vllm_command(config, role, gid).value(), " ");
  };
  pair_.worker_system.set_command(line(Role::kWorker, 5), prints("id\n"));
  pair_.head_system.set_command(line(Role::kHead, 3), prints("id\n"));
  container(pair_.worker_system, "exited");
  for (RecordedSystem* system : {&pair_.head_system, &pair_.worker_system}) {
    system->set_command("docker rm -f tandem-vllm", prints(""));
    system->set_command("docker logs --timestamps --tail 15 tandem-vllm",
                        prints("2026-01-01T00:00:02Z out of memory\n"));
  }
  const StartOutcome outcome = start();
  EXPECT_EQ(outcome.result, StartResult::kFailed);
  EXPECT_THAT(outcome.message, HasSubstr("the worker's container is exited"));
  EXPECT_THAT(outcome.message, HasSubstr("out of memory"));
  EXPECT_LT(said_.find("start worker"), said_.find("start head"));
  EXPECT_EQ(pair_.head_system.ran().back(), "docker rm -f tandem-vllm");
  EXPECT_EQ(pair_.worker_system.ran().back(), "docker rm -f tandem-vllm");
}

TEST_F(VllmPair, LogsOfBothAreInTheOrderOfTheirStamps) {
  const std::string command = "docker logs --timestamps --tail 3 tandem-vllm";
  pair_.head_system.set_command(command,
                                prints("2026-01-01T00:00:01Z a\n2026-01-01T00:00:03Z c\n"));
  pair_.worker_system.set_command(command,
                                  prints("2026-01-01T00:00:02Z b\n2026-01-01T00:00:04Z d\n"));
  EXPECT_THAT(
      vllm_log(pair_.config, pair_.head_system, pair_.worker_system, 3),
      ::testing::ElementsAre("worker: 2026-01-01T00:00:02Z b", "head: 2026-01-01T00:00:03Z c",
                             "worker: 2026-01-01T00:00:04Z d"));
}

}  // namespace
}  // namespace tandem::cluster
