// ClusterConfig: the one typed file (cluster.toml) that says what two machines run as one server.
// It lives on the head only; the worker gets what it needs with each command, so the two can never
// disagree. One table of fields drives reading, writing and the error for an unknown key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

struct NodeConfig {
  std::string ssh;              // worker: "user@host"; head: empty
  std::string address;          // IPv4 on the fabric; everything between the ranks is bound to it
  std::string interface;        // network interface that carries it
  std::string hca;              // RDMA devices in NCCL's selector grammar; empty = all active ports
  std::int64_t gid_index = -1;  // -1 = found at every start
  std::string model;            // empty = [cluster] model
  std::string state_dir = "/var/lib/tandem";
  std::string cpus;  // "5-9,15-19"; empty = the big cores
};

struct VllmConfig {
  std::string image = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1";
  std::string runtime = "docker";
  std::string revision = "9e165c30e2704aec5d9d593cce3eebd58bbef1cb";
  std::string cache_dir;
  std::int64_t rendezvous_port = 25000;
  std::int64_t memory_percent_x10 = 835;  // gpu-memory-utilization 0.835
  std::int64_t max_sequences = 6;
  std::int64_t draft_tokens = 5;
  std::int64_t max_batched_tokens = 8192;
  std::int64_t long_prefill_tokens = 1024;
  std::int64_t max_context_tokens = 1'048'576;
  std::string kv_dtype = "nvfp4_ds_mla";
  std::string thinking = "max";
};

struct ClusterConfig {
  std::string engine = "tandem";  // or "vllm"
  std::string binary = "/usr/bin/tandem";
  std::string model;
  std::string model_name;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::int64_t probe_port = 7801;  // UDP on the fabric: heartbeats between the nodes
  std::string profile = "balanced";
  std::int64_t memory_gib = 0;  // what one rank needs; 0 = derived from the checkpoint
  std::int64_t reserve_gib = 8;
  std::int64_t start_timeout_s = 1200;
  bool ignore_oom_killers = false;
  std::string api_keys_file;
  std::vector<std::string> ssh_options;
  NodeConfig head;
  NodeConfig worker;
  std::map<std::string, std::string> serve;  // further flags of `tandem serve`, without "--"
  VllmConfig vllm;

  const std::string& model_of(const NodeConfig& node) const {
    return node.model.empty() ? model : node.model;
  }
};

// Reads and checks the file's text. ERRORS: kInvalidArgument naming every bad key (with the
// nearest valid name) and every bad value, in one message.
Result<ClusterConfig> parse_cluster_config(std::string_view text);

// The file's text, with a comment for each key. Parsing it again gives the same config.
std::string to_toml(const ClusterConfig& config);

// The settings of `tandem serve` that a profile stands for. Names: balanced, coding, many, small.
// ERRORS: kInvalidArgument naming the known profiles.
Result<std::map<std::string, std::string>> profile_settings(std::string_view profile);

// What one variable of the two-Spark vLLM recipe's .env became.
struct ImportedVariable {
  std::string name;
  std::string value;
  std::string became;  // "worker.ssh", or "" if it has no meaning here
  std::string note;
};

struct ImportedConfig {
  ClusterConfig config;
  std::vector<ImportedVariable> variables;
};

// Reads the recipe's .env.dspark (BOM and CR allowed; quotes; "export"; comments).
// ERRORS: kInvalidArgument with the line that is no assignment, or the value that cannot be used.
Result<ImportedConfig> import_env(std::string_view text);

// The known name with the smallest edit distance.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// First 16 hexadecimal digits of the FNV-1a hash of the canonical text: tells configs apart.
std::string config_digest(const ClusterConfig& config);

SshTarget worker_target(const ClusterConfig& config, std::string socket_dir);

}  // namespace tandem::cluster
