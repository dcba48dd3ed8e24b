#include "operations/cluster/cluster_config.h"

#include <gmock/gmock.h>

#include "tests/unit/cluster/trees.h"

namespace tandem::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ClusterConfig, WritingAndReadingAgree) {
  ClusterConfig config = spark_config();
  config.engine = "vllm";
  config.head.hca = "=rocep1s0f1,roceP2p1s0f1";
  config.ssh_options = {"-F", "/tmp/a \"quoted\" path"};
  config.serve["max-sequences"] = "2";
  config.model = "/models/with 'quotes' and \\ and ümlaut";
  const auto again = parse_cluster_config(to_toml(config));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(to_toml(*again), to_toml(config));
  EXPECT_EQ(again->ssh_options, config.ssh_options);
  EXPECT_EQ(again->model, config.model);
  EXPECT_EQ(again->serve.at("max-sequences"), "2");
  EXPECT_EQ(config_digest(*again), config_digest(config));
  config.port = 9;
  EXPECT_NE(config_digest(*again), config_digest(config));
}

TEST(ClusterConfig, EveryProblemIsNamedAtOnce) {
  const auto config = parse_cluster_config(
      "[cluster]\nporrt = 1\nport = 70000\nengine = \"other\"\n[head]\naddress = 5\n[wrker]\n");
  ASSERT_FALSE(config.ok());
  const std::string& text = config.status().message();
  EXPECT_THAT(text, HasSubstr("[cluster] porrt: unknown key; did you mean 'port'?"));
  EXPECT_THAT(text, HasSubstr("[cluster] port: expected a whole number, 1 to 65535"));
  EXPECT_THAT(text, HasSubstr("engine: expected tandem or vllm"));
  EXPECT_THAT(text, HasSubstr("[head] address: expected a string"));
  EXPECT_THAT(text, HasSubstr("did you mean [worker]?"));
  EXPECT_THAT(text, HasSubstr("[cluster] model: missing"));
  EXPECT_THAT(parse_cluster_config("[cluster\n").status().message(), HasSubstr("line 1"));
}

TEST(ClusterConfig, OneAddressForBothIsRefused) {
  ClusterConfig config = spark_config();
  config.worker.address = config.head.address;
  EXPECT_THAT(parse_cluster_config(to_toml(config)).status().message(),
              HasSubstr("have the same address"));
  config = spark_config();
  config.worker.ssh = "-oProxyCommand=x";
  EXPECT_FALSE(parse_cluster_config(to_toml(config)).ok());
}

TEST(ClusterConfig, Profiles) {
  EXPECT_EQ(profile_settings("balanced").value().at("max-sequences"), "6");
  EXPECT_TRUE(profile_settings("small").value().empty());
  EXPECT_THAT(profile_settings("big").status().message(), HasSubstr("known: balanced"));
}

TEST(Import, TheRecipesEnvFile) {
  const auto imported = import_env(
      "\xEF\xBB\xBF# comment\r\nexport "
      "WORKER_HOST=\"nvidia@10.0.0.2\"\r\nMASTER_ADDR=192.168.100.1\n"
      "NCCL_IB_HCA='=rocep1s0f1,roceP2p1s0f1'\nNCCL_SOCKET_IFNAME=enp1s0f1np1 # the cable\n"
      "WORKER_VLLM_HOST_IP=192.168.100.2\nHF_CACHE=/data/hf\nMAX_NUM_SEQS=4\n"
      "GPU_MEMORY_UTILIZATION_TEXT=0.80\nNCCL_IB_GID_INDEX=3\nGLOO_SOCKET_IFNAME=enp1s0f1np1\n"
      "VLLM_API_KEY=very-secret\nNOT_KNOWN=1\nVLLM_PORT=\n");
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const ClusterConfig& config = imported->config;
  EXPECT_EQ(config.worker.ssh, "nvidia@10.0.0.2");
  EXPECT_EQ(config.head.address, "192.168.100.1");
  EXPECT_EQ(config.worker.address, "192.168.100.2");
  EXPECT_EQ(config.head.hca, "=rocep1s0f1,roceP2p1s0f1");
  EXPECT_EQ(config.head.interface, "enp1s0f1np1");
  EXPECT_EQ(config.worker.interface, "enp1s0f1np1");
  EXPECT_EQ(config.worker.hca, "");  // the head's names are never copied: D-02
  EXPECT_EQ(config.vllm.cache_dir, "/data/hf");
  EXPECT_EQ(config.vllm.max_sequences, 4);
  EXPECT_EQ(config.vllm.memory_percent_x10, 800);
  EXPECT_EQ(config.port, 8888);
  EXPECT_TRUE(parse_cluster_config(to_toml(config)).ok());
  std::map<std::string, ImportedVariable> by_name;
  for (const ImportedVariable& variable : imported->variables) {
    by_name[variable.name] = variable;
    EXPECT_THAT(variable.value, Not(HasSubstr("secret")));
  }
  EXPECT_EQ(by_name["WORKER_HOST"].became, "worker.ssh");
  EXPECT_EQ(by_name["NCCL_IB_GID_INDEX"].became, "");
  EXPECT_THAT(by_name["NCCL_IB_GID_INDEX"].note, HasSubstr("found at every start"));
  EXPECT_THAT(by_name["VLLM_API_KEY"].note, HasSubstr("api_keys_file"));
  EXPECT_THAT(by_name["NOT_KNOWN"].note, HasSubstr("unknown"));
}

TEST(Import, BadLinesAndValues) {
  EXPECT_FALSE(import_env("no assignment\n").ok());
  EXPECT_THAT(import_env("MAX_NUM_SEQS=many\n").status().message(), HasSubstr("MAX_NUM_SEQS"));
  EXPECT_FALSE(import_env("GPU_MEMORY_UTILIZATION_TEXT=1.5\n").ok());
  EXPECT_FALSE(import_env("DEFAULT_THINKING=medium\n").ok());
}

}  // namespace
}  // namespace tandem::cluster
