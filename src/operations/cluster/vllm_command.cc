#include "operations/cluster/vllm_command.h"

#include <fmt/format.h>

#include <utility>

#include "foundation/json/json.h"

namespace tandem::cluster {
namespace {

constexpr const char* kCacheInside = "/cache/huggingface";
constexpr int kDraftBlock = 5;  // a checkpoint's DSpark block; fewer drafts are cut silently

using Words = std::vector<std::string>;

void add(Words& out, std::initializer_list<std::string> words) {
  out.insert(out.end(), words.begin(), words.end());
}

std::vector<std::pair<std::string, std::string>> environment(const ClusterConfig& config,
                                                             const NodeConfig& node,
                                                             int gid_index) {
  const std::string hca = node.hca.empty() ? config.head.hca : node.hca;
  std::vector<std::pair<std::string, std::string>> out{
      {"VLLM_HOST_IP", node.address},
      {"NCCL_SOCKET_IFNAME", node.interface},
      {"TP_SOCKET_IFNAME", node.interface},
      {"GLOO_SOCKET_IFNAME", node.interface},
      {"NCCL_NET", "IB"},
      {"NCCL_IB_DISABLE", "0"},
      {"NCCL_IB_ADDR_FAMILY", "AF_INET"},
      {"NCCL_IB_ROCE_VERSION_NUM", "2"},
      {"NCCL_CROSS_NIC", "1"},
      {"NCCL_CUMEM_ENABLE", "0"},
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_IGNORE_CPU_AFFINITY", "1"},
      {"NCCL_DEBUG", "WARN"},
      {"HF_HUB_OFFLINE", "1"},
      {"TRANSFORMERS_OFFLINE", "1"},
      {"VLLM_USE_BREAKABLE_CUDAGRAPH", "0"},
      {"VLLM_USE_FLASHINFER_SAMPLER", "1"},
      {"VLLM_USE_B12X_MOE", "1"},
      {"VLLM_ALLOW_LONG_MAX_MODEL_LEN", "1"},
      {"VLLM_SPARSE_INDEXER_MAX_LOGITS_MB", "256"},
      {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "0"},
      {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "1800"},
      {"VLLM_ENABLE_RESPONSES_API_STORE", "1"},
      {"VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "4096"},
      {"CUTE_DSL_ARCH", "sm_121a"},
      {"TORCH_CUDA_ARCH_LIST", "12.1a"},
      {"FLASHINFER_CUDA_ARCH_LIST", "12.1a"},
      {"FLASHINFER_DISABLE_VERSION_CHECK", "1"},
      {"HF_HOME", kCacheInside},
      {"VLLM_CACHE_ROOT", std::string(kCacheInside) + "/vllm"},
      {"TILELANG_CACHE_DIR", std::string(kCacheInside) + "/tilelang"},
      {"FLASHINFER_WORKSPACE_BASE", std::string(kCacheInside) + "/flashinfer"},
  };
  // An empty NCCL variable would hide NCCL's own configuration file, so it is left out.
  if (!hca.empty()) {
    out.emplace_back("NCCL_IB_HCA", hca);
  }
  if (gid_index >= 0) {
    out.emplace_back("NCCL_IB_GID_INDEX", std::to_string(gid_index));
  }
  return out;
}

Result<std::string> template_kwargs(const std::string& thinking) {
  if (thinking == "off") {
    return json::dump(json::Object{{"thinking", false}});
  }
  if (thinking == "low" || thinking == "high" || thinking == "max") {
    return json::dump(json::Object{{"thinking", true}, {"reasoning_effort", thinking}});
  }
  return invalid_argument("[vllm] thinking: '{}', expected off, low, high or max", thinking);
}

Words container_words(const ClusterConfig& config, const NodeConfig& node, int gid_index) {
  Words out{config.vllm.runtime, "run", "-d", "--name", kContainer, "--network", "host"};
  add(out, {"--ipc", "host", "--shm-size", "64g", "--ulimit", "memlock=-1", "--ulimit",
            "stack=67108864", "--device", "/dev/infiniband", "--pull", "never", "--restart", "no"});
  if (config.vllm.runtime == "podman") {
    add(out, {"--device", "nvidia.com/gpu=all"});
  } else {
    add(out, {"--gpus", "all"});
  }
  add(out, {"-v", config.vllm.cache_dir + ":" + kCacheInside});
  for (const auto& [name, value] : environment(config, node, gid_index)) {
    add(out, {"-e", name + "=" + value});
  }
  return out;
}

void add_speculation(Words& out, const VllmConfig& vllm) {
  if (vllm.draft_tokens == 0) {
    return;
  }
  add(out, {"--speculative-config",
            json::dump(json::Object{{"method", "dspark"},
                                    {"num_speculative_tokens", vllm.draft_tokens},
                                    {"draft_sample_method", "probabilistic"}})});
}

void add_limits(Words& out, const VllmConfig& vllm) {
  add(out,
      {"--kv-cache-dtype", vllm.kv_dtype, "--block-size", "256", "--max-model-len",
       std::to_string(vllm.max_context_tokens), "--max-num-seqs",
       std::to_string(vllm.max_sequences), "--max-num-batched-tokens",
       std::to_string(vllm.max_batched_tokens), "--long-prefill-token-threshold",
       std::to_string(vllm.long_prefill_tokens), "--max-cudagraph-capture-size",
       std::to_string(graph_capture_size(vllm)), "--gpu-memory-utilization",
       fmt::format("{}.{:03}", vllm.memory_percent_x10 / 1000, vllm.memory_percent_x10 % 1000)});
}

}  // namespace

std::int64_t graph_capture_size(const VllmConfig& config) {
  return config.max_sequences * (config.draft_tokens + 1);
}

Result<std::vector<std::string>> vllm_command(const ClusterConfig& config, Role role,
                                              int gid_index) {
  const VllmConfig& vllm = config.vllm;
  if (!config.api_keys_file.empty()) {
    return invalid_argument(
        "[cluster] api_keys_file: with engine = \"vllm\" keys would stand in the command line, "
        "which every user of the machine can read; leave host at 127.0.0.1 and put a proxy that "
        "checks keys in front");
  }
  if (vllm.cache_dir.empty()) {
    return invalid_argument(
        "[vllm] cache_dir: missing; give the Hugging Face cache folder that holds the checkpoint");
  }
  if (vllm.draft_tokens != 0 && vllm.draft_tokens < kDraftBlock) {
    return invalid_argument("[vllm] draft_tokens: {}, expected 0 or at least {}", vllm.draft_tokens,
                            kDraftBlock);
  }
  TANDEM_ASSIGN(const std::string thinking, template_kwargs(vllm.thinking));
  const bool is_head = role == Role::kHead;
  Words out = container_words(config, is_head ? config.head : config.worker, gid_index);
  add(out, {"--entrypoint", "vllm", vllm.image, "serve", config.model});
  if (!vllm.revision.empty()) {
    add(out, {"--revision", vllm.revision});
  }
  add(out, {"--host", config.host, "--port", std::to_string(config.port)});
  if (!config.model_name.empty()) {
    add(out, {"--served-model-name", config.model_name});
  }
  add(out, {"--tensor-parallel-size", "2", "--pipeline-parallel-size", "1", "--nnodes", "2",
            "--node-rank", is_head ? "0" : "1", "--master-addr", config.head.address,
            "--master-port", std::to_string(vllm.rendezvous_port)});
  add(out, {"--distributed-executor-backend", "mp"});
  add_limits(out, vllm);
  add(out, {"--enable-prefix-caching", "--enable-prompt-tokens-details", "--async-scheduling",
            "--enable-chunked-prefill"});
  add_speculation(out, vllm);
  add(out, {"--tokenizer-mode", "deepseek_v4", "--reasoning-parser", "deepseek_v4",
            "--tool-call-parser", "deepseek_v4", "--enable-auto-tool-choice"});
  add(out, {"--default-chat-template-kwargs", thinking, "--generation-config", "vllm",
            "--moe-backend", "flashinfer_b12x", "--trust-remote-code"});
  if (!is_head) {
    out.emplace_back("--headless");
  }
  return out;
}

}  // namespace tandem::cluster
