// The importer of the two-Spark vLLM recipe's .env file. SOURCE: recipe.md 1.2 to 1.6.
#include <algorithm>
#include <charconv>
#include <functional>

#include "operations/cluster/cluster_config.h"

namespace tandem::cluster {
namespace {

struct Rule {
  std::string name;
  std::string became;
  // Stores the value; false if it cannot be used.
  std::function<bool(ClusterConfig&, const std::string&)> store;
};

template <typename Member>
auto text_into(Member member) {
  return [member](ClusterConfig& config, const std::string& value) {
    member(config) = value;
    return true;
  };
}

template <typename Member>
auto number_into(Member member, std::int64_t low, std::int64_t high) {
  return [member, low, high](ClusterConfig& config, const std::string& value) {
    std::int64_t number = 0;
    const auto end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number < low || number > high) {
      return false;
    }
    member(config) = number;
    return true;
  };
}

bool store_fraction(ClusterConfig& config, const std::string& value) {
  if (value.rfind("0.", 0) != 0 || value.size() > 5 ||
      value.find_first_not_of("0123456789", 2) != std::string::npos) {
    return false;
  }
  std::string digits = value.substr(2);
  digits.resize(3, '0');
  config.vllm.memory_percent_x10 = std::stoi(digits);
  return config.vllm.memory_percent_x10 > 0;
}

bool store_thinking(ClusterConfig& config, const std::string& value) {
  config.vllm.thinking = value;
  return value == "off" || value == "low" || value == "high" || value == "max";
}

std::vector<Rule> fabric_rules() {
  using C = ClusterConfig;
  const auto head_interface = [](C& c) -> std::string& { return c.head.interface; };
  const auto worker_interface = [](C& c) -> std::string& { return c.worker.interface; };
  return {
      {"WORKER_HOST", "worker.ssh", text_into([](C& c) -> std::string& { return c.worker.ssh; })},
      {"MASTER_ADDR", "head.address",
       text_into([](C& c) -> std::string& { return c.head.address; })},
      {"MASTER_PORT", "vllm.rendezvous_port",
       number_into([](C& c) -> std::int64_t& { return c.vllm.rendezvous_port; }, 1, 65535)},
      {"VLLM_HOST_IP", "head.address",
       text_into([](C& c) -> std::string& { return c.head.address; })},
      {"WORKER_VLLM_HOST_IP", "worker.address",
       text_into([](C& c) -> std::string& { return c.worker.address; })},
      {"NCCL_IB_HCA", "head.hca", text_into([](C& c) -> std::string& { return c.head.hca; })},
      {"WORKER_NCCL_IB_HCA", "worker.hca",
       text_into([](C& c) -> std::string& { return c.worker.hca; })},
      {"NCCL_SOCKET_IFNAME", "head.interface", text_into(head_interface)},
      {"WORKER_NCCL_SOCKET_IFNAME", "worker.interface", text_into(worker_interface)},
  };
}

std::vector<Rule> engine_rules() {
  using C = ClusterConfig;
  return {
      {"HF_CACHE", "vllm.cache_dir",
       text_into([](C& c) -> std::string& { return c.vllm.cache_dir; })},
      {"DSPARK_VLLM_IMAGE", "vllm.image",
       text_into([](C& c) -> std::string& { return c.vllm.image; })},
      {"DSPARK_REVISION", "vllm.revision",
       text_into([](C& c) -> std::string& { return c.vllm.revision; })},
      {"DSPARK_MODEL_OFFICIAL", "cluster.model",
       text_into([](C& c) -> std::string& { return c.model; })},
      {"SERVED_MODEL_NAME", "cluster.model_name",
       text_into([](C& c) -> std::string& { return c.model_name; })},
      {"VLLM_HOST", "cluster.host", text_into([](C& c) -> std::string& { return c.host; })},
      {"VLLM_PORT", "cluster.port",
       number_into([](C& c) -> std::int64_t& { return c.port; }, 1, 65535)},
      {"PORT", "cluster.port", number_into([](C& c) -> std::int64_t& { return c.port; }, 1, 65535)},
      {"MAX_MODEL_LEN", "vllm.max_context_tokens",
       number_into([](C& c) -> std::int64_t& { return c.vllm.max_context_tokens; }, 1, 1 << 24)},
      {"MAX_NUM_SEQS", "vllm.max_sequences",
       number_into([](C& c) -> std::int64_t& { return c.vllm.max_sequences; }, 1, 1024)},
      {"MAX_NUM_BATCHED_TOKENS", "vllm.max_batched_tokens",
       number_into([](C& c) -> std::int64_t& { return c.vllm.max_batched_tokens; }, 1, 1 << 24)},
      {"LONG_PREFILL_TOKEN_THRESHOLD", "vllm.long_prefill_tokens",
       number_into([](C& c) -> std::int64_t& { return c.vllm.long_prefill_tokens; }, 0, 1 << 24)},
      {"MTP_NUM_TOKENS", "vllm.draft_tokens",
       number_into([](C& c) -> std::int64_t& { return c.vllm.draft_tokens; }, 0, 64)},
      {"GPU_MEMORY_UTILIZATION_TEXT", "vllm.memory_percent_x10", store_fraction},
      {"DEFAULT_THINKING", "vllm.thinking", store_thinking},
  };
}

// Variables that mean nothing to this tool, and why.
struct Meaningless {
  std::string prefix;
  std::string why;
};

const std::vector<Meaningless>& meaningless() {
  static const std::vector<Meaningless> list{
      {"NCCL_IB_GID", "the GID index is found at every start"},
      {"WORKER_NCCL_IB_GID", "the GID index is found at every start"},
      {"NCCL_", "Tandem sets its transport itself; engine = \"vllm\" sets the recipe's values"},
      {"TP_SOCKET_IFNAME", "the interface of the node is used"},
      {"GLOO_SOCKET_IFNAME", "the interface of the node is used"},
      {"WORKER_TP_SOCKET_IFNAME", "the interface of the node is used"},
      {"WORKER_GLOO_SOCKET_IFNAME", "the interface of the node is used"},
      {"NODE_RANK", "given to each rank at its start"},
      {"HEADLESS", "given to each rank at its start"},
      {"WORKER_SCRIPT_DIR", "no scripts are copied"},
      {"WORKER_DIR", "no scripts are copied"},
      {"VLLM_API_KEY", "keys live in a file: set cluster.api_keys_file"},
      {"DSPARK_API_KEYS", "keys live in a file: set cluster.api_keys_file"},
      {"HF_", "serving never downloads"},
      {"TRANSFORMERS_OFFLINE", "serving never downloads"},
      {"VL_", "there is no vision sidecar"},
      {"ENABLE_VL_SIDECAR", "there is no vision sidecar"},
      {"DSPARK_SKIP_", "there are no patches to skip"},
      {"DSPARK_ENABLE_", "there are no patches to enable"},
      {"VLLM_", "a setting of the container only"},
      {"DSPARK_", "a setting of the container only"},
      {"TORCH_", "nothing is compiled at run time"},
      {"TRITON_", "nothing is compiled at run time"},
      {"TILELANG_", "nothing is compiled at run time"},
      {"FLASHINFER_", "nothing is compiled at run time"},
      {"CUTE_DSL_ARCH", "nothing is compiled at run time"},
      {"PYTORCH_", "there is no PyTorch"}};
  return list;
}

// The value without quotes and without a comment behind it.
std::string clean_value(std::string value) {
  value = trimmed(value);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) {
    const std::size_t end = value.find(value.front(), 1);
    if (end != std::string::npos) {
      return value.substr(1, end - 1);
    }
  }
  const std::size_t comment = value.find(" #");
  return trimmed(value.substr(0, comment));
}

ImportedVariable ignored(const std::string& name, const std::string& value) {
  for (const Meaningless& item : meaningless()) {
    if (name.rfind(item.prefix, 0) == 0) {
      const bool secret = name.find("KEY") != std::string::npos;
      return {name, secret ? "(hidden)" : value, "", item.why};
    }
  }
  return {name, value, "", "unknown to the recipe and to this tool"};
}

}  // namespace

Result<ImportedConfig> import_env(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    text.remove_prefix(3);
  }
  std::vector<Rule> rules = fabric_rules();
  const std::vector<Rule> more = engine_rules();
  rules.insert(rules.end(), more.begin(), more.end());
  ImportedConfig out;
  out.config.engine = "vllm";
  out.config.port = 8888;
  out.config.model = "deepseek-ai/DeepSeek-V4-Flash-0731";
  for (const std::string& raw : lines_of(text)) {
    std::string line = trimmed(raw);
    if (line.rfind("export ", 0) == 0) {
      line = trimmed(line.substr(7));
    }
    if (line.empty() || line[0] == '#') {
      continue;
    }
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid_argument("'{}': expected NAME=value", line);
    }
    const std::string name = trimmed(line.substr(0, equals));
    const std::string value = clean_value(line.substr(equals + 1));
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&name](const Rule& item) { return item.name == name; });
    if (rule == rules.end()) {
      out.variables.push_back(ignored(name, value));
    } else if (value.empty()) {
      out.variables.push_back({name, "", "", "empty: the default stays"});
    } else if (!rule->store(out.config, value)) {
      return invalid_argument("{} = '{}': cannot be used for {}", name, value, rule->became);
    } else {
      out.variables.push_back({name, value, rule->became, ""});
    }
  }
  // The recipe's own fallbacks: the worker takes the head's names and its ssh host's address.
  NodeConfig& worker = out.config.worker;
  if (worker.interface.empty()) {
    worker.interface = out.config.head.interface;
  }
  if (worker.address.empty()) {
    worker.address = worker.ssh.substr(worker.ssh.find('@') + 1);
  }
  return out;
}

}  // namespace tandem::cluster
