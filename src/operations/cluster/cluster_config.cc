#include "operations/cluster/cluster_config.h"

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

namespace tandem::cluster {
namespace {

using Target = std::variant<std::string*, std::int64_t*, bool*, std::vector<std::string>*>;

struct Field {
  std::string section;
  std::string name;
  Target value;
  std::string help;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

void add_node_fields(std::vector<Field>& out, const std::string& section, NodeConfig& node) {
  if (section == "worker") {
    out.push_back({section, "ssh", &node.ssh, "how the head reaches this machine: user@host"});
  }
  out.push_back({section, "address", &node.address, "IPv4 address on the fabric (the QSFP cable)"});
  out.push_back({section, "interface", &node.interface, "network interface with that address"});
  out.push_back({section, "hca", &node.hca, "RDMA devices, as NCCL_IB_HCA; empty = all active"});
  out.push_back({section, "gid_index", &node.gid_index,
                 "RoCE GID index; -1 = found at every start (recommended)", -1, 255});
  out.push_back({section, "model", &node.model, "checkpoint folder here, if it differs"});
  out.push_back({section, "state_dir", &node.state_dir, "locks, logs and status"});
  out.push_back(
      {section, "cpus", &node.cpus, "cores of the rank, as 5-9,15-19; empty = big cores"});
}

std::vector<Field> fields_of(ClusterConfig& c) {
  constexpr std::int64_t kPorts = 65535;
  std::vector<Field> out{
      {"cluster", "engine", &c.engine, "tandem, or vllm for the known container"},
      {"cluster", "binary", &c.binary, "the tandem program; same path on both machines"},
      {"cluster", "model", &c.model, "checkpoint folder"},
      {"cluster", "model_name", &c.model_name, "name in the API; empty = the folder's name"},
      {"cluster", "host", &c.host, "address the API listens on; 0.0.0.0 = every network"},
      {"cluster", "port", &c.port, "port of the API", 1, kPorts},
      {"cluster", "probe_port", &c.probe_port, "UDP port of the heartbeat on the fabric", 1,
       kPorts},
      {"cluster", "profile", &c.profile, "balanced, coding, many or small"},
      {"cluster", "memory_gib", &c.memory_gib, "memory one rank needs; 0 = derived", 0, 4096},
      {"cluster", "reserve_gib", &c.reserve_gib, "memory left to the system", 0, 4096},
      {"cluster", "start_timeout_s", &c.start_timeout_s, "longest wait for ready", 5, 86400},
      {"cluster", "ignore_oom_killers", &c.ignore_oom_killers, "start although one is active"},
      {"cluster", "api_keys_file", &c.api_keys_file, "file with one API key a line"},
      {"cluster", "ssh_options", &c.ssh_options, "further words for ssh"}};
  add_node_fields(out, "head", c.head);
  add_node_fields(out, "worker", c.worker);
  VllmConfig& v = c.vllm;
  const std::vector<Field> vllm{
      {"vllm", "image", &v.image, "container image"},
      {"vllm", "runtime", &v.runtime, "docker or podman"},
      {"vllm", "revision", &v.revision, "revision of the checkpoint; empty = newest"},
      {"vllm", "cache_dir", &v.cache_dir, "Hugging Face cache on both machines"},
      {"vllm", "rendezvous_port", &v.rendezvous_port, "port where the ranks meet", 1, kPorts},
      {"vllm", "memory_percent_x10", &v.memory_percent_x10, "share of GPU memory x 1000", 1, 1000},
      {"vllm", "max_sequences", &v.max_sequences, "requests at a time", 1, 1024},
      {"vllm", "draft_tokens", &v.draft_tokens, "drafted tokens a step", 0, 64},
      {"vllm", "max_batched_tokens", &v.max_batched_tokens, "tokens a step", 1, 1 << 24},
      {"vllm", "long_prefill_tokens", &v.long_prefill_tokens, "prefill tokens a step", 0, 1 << 24},
      {"vllm", "max_context_tokens", &v.max_context_tokens, "longest request", 1, 1 << 24},
      {"vllm", "kv_dtype", &v.kv_dtype, "format of the KV cache"},
      {"vllm", "thinking", &v.thinking, "off, low, high or max"}};
  out.insert(out.end(), vllm.begin(), vllm.end());
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string value_text(const Target& value) {
  if (const auto* const* text = std::get_if<std::string*>(&value)) {
    return quoted(**text);
  }
  if (const auto* const* number = std::get_if<std::int64_t*>(&value)) {
    return std::to_string(**number);
  }
  if (const auto* const* flag = std::get_if<bool*>(&value)) {
    return **flag ? "true" : "false";
  }
  std::vector<std::string> parts;
  for (const std::string& part : *std::get<std::vector<std::string>*>(value)) {
    parts.push_back(quoted(part));
  }
  return "[" + joined(parts, ", ") + "]";
}

// Stores the node's value; returns what was expected if it has another type or range.
std::string store(const Field& field, const toml::node& node) {
  if (auto* const* text = std::get_if<std::string*>(&field.value)) {
    const auto value = node.value_exact<std::string>();
    **text = value.value_or("");
    return value ? "" : "a string in quotes";
  }
  if (auto* const* flag = std::get_if<bool*>(&field.value)) {
    const auto value = node.value_exact<bool>();
    **flag = value.value_or(false);
    return value ? "" : "true or false";
  }
  if (auto* const* number = std::get_if<std::int64_t*>(&field.value)) {
    const auto value = node.value_exact<std::int64_t>();
    const bool good = value && *value >= field.low && *value <= field.high;
    **number = good ? *value : **number;
    return good ? "" : fmt::format("a whole number, {} to {}", field.low, field.high);
  }
  auto& list = *std::get<std::vector<std::string>*>(field.value);
  list.clear();
  const toml::array* array = node.as_array();
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    const auto value = array->get(i)->value_exact<std::string>();
    if (!value) {
      return "a list of strings";
    }
    list.push_back(*value);
  }
  return array != nullptr ? "" : "a list of strings";
}

void read_section(const std::string& section, const toml::table& table,
                  const std::vector<Field>& fields, std::string& problems) {
  std::vector<std::string> known;
  for (const Field& field : fields) {
    if (field.section == section) {
      known.push_back(field.name);
    }
  }
  for (auto&& [key, node] : table) {
    const std::string name(key.str());
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field& f) {
      return f.section == section && f.name == name;
    });
    if (field == fields.end()) {
      problems += fmt::format("\n  [{}] {}: unknown key; did you mean '{}'?", section, name,
                              nearest_name(name, known));
      continue;
    }
    const std::string expected = store(*field, node);
    if (!expected.empty()) {
      problems += fmt::format("\n  [{}] {}: expected {}", section, name, expected);
    }
  }
}

void read_serve(const toml::table& table, ClusterConfig& config, std::string& problems) {
  for (auto&& [key, node] : table) {
    std::string name(key.str());
    std::replace(name.begin(), name.end(), '_', '-');
    if (const auto text = node.value_exact<std::string>()) {
      config.serve[name] = *text;
    } else if (const auto number = node.value_exact<std::int64_t>()) {
      config.serve[name] = std::to_string(*number);
    } else if (const auto flag = node.value_exact<bool>()) {
      config.serve[name] = *flag ? "true" : "false";
    } else {
      problems += fmt::format("\n  [serve] {}: expected a string, whole number or boolean", name);
    }
  }
}

void check_values(const ClusterConfig& c, std::string& problems) {
  const auto need = [&problems](bool good, std::string_view text) {
    problems += good ? "" : fmt::format("\n  {}", text);
  };
  need(c.engine == "tandem" || c.engine == "vllm", "[cluster] engine: expected tandem or vllm");
  need(!c.model.empty(), "[cluster] model: missing; give the checkpoint folder");
  need(!c.worker.ssh.empty(), "[worker] ssh: missing; give user@host of the second machine");
  need(c.worker.ssh.empty() || c.worker.ssh.front() != '-', "[worker] ssh: starts with '-'");
  need(!c.head.address.empty(), "[head] address: missing; give its IPv4 address on the fabric");
  need(!c.worker.address.empty(), "[worker] address: missing; give its IPv4 address on the fabric");
  need(c.head.address.empty() || c.head.address != c.worker.address,
       "[head] and [worker] have the same address");
  need(!c.head.interface.empty(), "[head] interface: missing; see `ip -4 addr`");
  need(!c.worker.interface.empty(), "[worker] interface: missing; see `ip -4 addr` there");
  need(profile_settings(c.profile).ok(),
       "[cluster] profile: expected balanced, coding, many or small");
  need(c.vllm.runtime == "docker" || c.vllm.runtime == "podman",
       "[vllm] runtime: expected docker or podman");
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::string::npos;
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = j;
    }
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t same = diagonal + (name[i - 1] == candidate[j - 1] ? 0U : 1U);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, same});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

Result<ClusterConfig> parse_cluster_config(std::string_view text) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return invalid_argument("line {}: {}", error.source().begin.line, error.description());
  }
  ClusterConfig config;
  const std::vector<Field> fields = fields_of(config);
  std::string problems;
  for (auto&& [key, node] : table) {
    const std::string section(key.str());
    const std::vector<std::string> known{"cluster", "head", "worker", "serve", "vllm"};
    const bool is_known = std::find(known.begin(), known.end(), section) != known.end();
    if (!is_known || node.as_table() == nullptr) {
      problems += fmt::format("\n  {}: expected a section; did you mean [{}]?", section,
                              nearest_name(section, known));
    } else if (section == "serve") {
      read_serve(*node.as_table(), config, problems);
    } else {
      read_section(section, *node.as_table(), fields, problems);
    }
  }
  check_values(config, problems);
  if (!problems.empty()) {
    return Status(StatusCode::kInvalidArgument, "cluster.toml:" + problems);
  }
  return config;
}

std::string to_toml(const ClusterConfig& config) {
  ClusterConfig copy = config;
  std::string out = "# Tandem: two machines, one server. This file lives on the head only.\n";
  std::string section;
  const auto write_serve = [&] {
    out += "\n[serve]  # further settings of `tandem serve`; they win over the profile\n";
    for (const auto& item : config.serve) {
      std::string name = item.first;
      std::replace(name.begin(), name.end(), '-', '_');
      out += fmt::format("{} = {}\n", name, quoted(item.second));
    }
  };
  for (const Field& field : fields_of(copy)) {
    if (field.section == "vllm" && config.engine != "vllm") {
      continue;
    }
    if (field.section != section) {
      section = field.section;
      out += fmt::format("\n[{}]\n", section);
    }
    out += fmt::format("{} = {}  # {}\n", field.name, value_text(field.value), field.help);
  }
  write_serve();
  return out;
}

Result<std::map<std::string, std::string>> profile_settings(std::string_view profile) {
  using Settings = std::map<std::string, std::string>;
  if (profile == "balanced") {  // the recipe's own default: 6 rows, 1M ceiling, 5 drafts
    return Settings{{"max-sequences", "6"},
                    {"max-context-tokens", "1048576"},
                    {"kv-tokens", "2097152"},
                    {"prefill-tokens", "8192"},
                    {"draft-tokens", "5"}};
  }
  if (profile == "coding") {  // few long sessions
    return Settings{{"max-sequences", "4"},
                    {"max-context-tokens", "1048576"},
                    {"kv-tokens", "2097152"},
                    {"prefill-tokens", "16384"},
                    {"draft-tokens", "5"}};
  }
  if (profile == "many") {  // many short ones
    return Settings{{"max-sequences", "16"},
                    {"max-context-tokens", "200000"},
                    {"kv-tokens", "1572864"},
                    {"prefill-tokens", "8192"},
                    {"draft-tokens", "5"}};
  }
  if (profile == "small") {  // the bundled model on CPU ranks: the engine's own defaults
    return Settings{};
  }
  return invalid_argument("profile '{}'; known: balanced, coding, many, small", profile);
}

std::string config_digest(const ClusterConfig& config) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : to_toml(config)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

SshTarget worker_target(const ClusterConfig& config, std::string socket_dir) {
  return {config.worker.ssh, config.ssh_options, std::move(socket_dir)};
}

}  // namespace tandem::cluster
