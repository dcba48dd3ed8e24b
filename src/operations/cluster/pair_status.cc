#include "operations/cluster/pair_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "foundation/net/http_client.h"
#include "operations/cluster/checks.h"
#include "operations/cluster/run_lock.h"
#include "operations/cluster/serve_command.h"
#include "operations/cluster/vllm_pair.h"

namespace tandem::cluster {
namespace {

constexpr auto kBetweenLooks = std::chrono::seconds(1);

std::string fetch(const std::string& url, const std::string& target) {
  const auto parsed = net::parse_url(url);
  net::HttpRequest request;
  request.target = target;
  request.connect_timeout_ms = 2'000;
  request.idle_timeout_ms = 2'000;
  const auto response = parsed.ok() ? net::http_fetch(*parsed, request) : parsed.status();
  return response.ok() ? response->body : "";
}

double hottest_zone(HostSystem& system) {
  double hottest = -1;
  const auto zones = system.list_dir("/sys/class/thermal");
  for (const std::string& zone : zones.ok() ? *zones : std::vector<std::string>{}) {
    if (zone.rfind("thermal_zone", 0) == 0) {
      constexpr double kMilli = 1000;
      const std::string text = read_word(system, "/sys/class/thermal/" + zone + "/temp");
      hottest = std::max(hottest, text.empty() ? -1 : std::strtod(text.c_str(), nullptr) / kMilli);
    }
  }
  return hottest;
}

NodeStatus read_node(HostSystem& system, const std::string& name) {
  NodeStatus node;
  node.name = name;
  const auto memory = system.read_file("/proc/meminfo");
  if (!memory.ok()) {
    return node;
  }
  node.answers = true;
  node.available_bytes = meminfo_bytes(*memory, "MemAvailable");
  node.total_bytes = meminfo_bytes(*memory, "MemTotal");
  node.celsius = hottest_zone(system);
  node.uptime_s =
      static_cast<std::int64_t>(std::strtod(read_word(system, "/proc/uptime").c_str(), nullptr));
  return node;
}

std::vector<RankStatus> read_ranks(const std::string& health_body) {
  std::vector<RankStatus> ranks;
  const auto body = json::parse(health_body);
  const json::Value* list = body.ok() ? json::find(*body, "ranks") : nullptr;
  if (list == nullptr || !list->is_array()) {
    return ranks;
  }
  for (const json::Value& entry : list->get_array()) {
    const json::Value* rank = json::find(entry, "rank");
    const json::Value* host = json::find(entry, "host");
    const json::Value* alive = json::find(entry, "alive");
    if (rank != nullptr && rank->is_int64() && host != nullptr && host->is_string() &&
        alive != nullptr && alive->is_bool()) {
      ranks.push_back({rank->get_int64(), std::string(host->get_string()), alive->get_bool()});
    }
  }
  return ranks;
}

std::string gib(std::int64_t bytes) {
  return bytes < 0 ? "?" : fmt::format("{:.1f}", static_cast<double>(bytes) / (1LL << 30));
}

}  // namespace

double metric_sum(std::string_view page, std::string_view name) {
  double sum = 0;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    const std::string_view line = page.substr(at, end - at);
    const bool starts = line.substr(0, name.size()) == name && line.size() > name.size() &&
                        (line[name.size()] == '{' || line[name.size()] == ' ');
    if (starts) {
      sum += std::strtod(std::string(line.substr(line.rfind(' ') + 1)).c_str(), nullptr);
    }
    at = end + 1;
  }
  return sum;
}

PairStatus read_status(const ClusterConfig& config, HostSystem& head, HostSystem& worker) {
  PairStatus status;
  const std::string url = server_url(config);
  const auto lock = read_lock(head, config.head.state_dir);
  status.running = lock && lock->alive;
  status.stale_lock = lock && !lock->alive;
  status.pid = lock ? lock->pid : 0;
  status.health = read_health(url);
  if (config.engine == "vllm") {
    status.running = container_state(config, head) == "running";
    status.ranks = {{0, "head", status.running},
                    {1, "worker", container_state(config, worker) == "running"}};
  }
  status.fabric = fmt::format("{} {} <-> {}", config.head.interface, config.head.address,
                              config.worker.address);
  if (status.health.answers) {
    if (config.engine != "vllm") {
      status.ranks = read_ranks(fetch(url, "/health"));
    }
    const std::string first = fetch(url, "/metrics");
    std::this_thread::sleep_for(kBetweenLooks);
    const std::string second = fetch(url, "/metrics");
    const char* tokens = "vllm:generation_tokens_total";
    status.tokens_per_s = metric_sum(second, tokens) - metric_sum(first, tokens);
    status.running_requests = metric_sum(second, "vllm:num_requests_running");
    status.waiting_requests = metric_sum(second, "vllm:num_requests_waiting");
    const double drafted = metric_sum(second, "vllm:spec_decode_num_draft_tokens_total");
    if (drafted > 0) {
      status.acceptance =
          metric_sum(second, "vllm:spec_decode_num_accepted_tokens_total") / drafted;
    }
  }
  status.nodes = {read_node(head, "head"), read_node(worker, "worker")};
  return status;
}

int PairStatus::exit_code() const {
  constexpr int kDown = 1;
  constexpr int kUnhealthy = 5;
  if (!running && !health.answers) {
    return kDown;
  }
  return health.ok ? 0 : kUnhealthy;
}

std::string PairStatus::to_text() const {
  std::string out = fmt::format(
      "server   {}\n", health.ok        ? fmt::format("healthy (pid {})", pid)
                       : health.answers ? fmt::format("UNHEALTHY: {} (pid {})", health.verdict, pid)
                       : running        ? fmt::format("starting (pid {})", pid)
                       : stale_lock     ? "down; the last run ended without cleaning up"
                                        : "down");
  for (const RankStatus& rank : ranks) {
    out += fmt::format("rank {}   {} on {}\n", rank.rank, rank.alive ? "alive" : "DEAD", rank.host);
  }
  if (health.answers) {
    out += fmt::format(
        "load     {:.0f} running, {:.0f} waiting, {:.1f} tokens/s{}\n", running_requests,
        waiting_requests, tokens_per_s,
        acceptance < 0 ? "" : fmt::format(", {:.0f}% of drafts accepted", 100 * acceptance));
  }
  out += fmt::format("fabric   {}\n", fabric);
  for (const NodeStatus& node : nodes) {
    out += node.answers
               ? fmt::format("{:<8} memory {} of {} GiB available{}, up {} h\n", node.name,
                             gib(node.available_bytes), gib(node.total_bytes),
                             node.celsius < 0 ? "" : fmt::format(", {:.0f} C", node.celsius),
                             node.uptime_s / 3600)
               : fmt::format("{:<8} does not answer\n", node.name);
  }
  return out;
}

json::Value PairStatus::to_json() const {
  json::Array rank_list;
  for (const RankStatus& rank : ranks) {
    rank_list.push_back(
        json::Object{{"rank", rank.rank}, {"host", rank.host}, {"alive", rank.alive}});
  }
  json::Array node_list;
  for (const NodeStatus& node : nodes) {
    node_list.push_back(json::Object{{"name", node.name},
                                     {"answers", node.answers},
                                     {"available_bytes", node.available_bytes},
                                     {"total_bytes", node.total_bytes},
                                     {"celsius", node.celsius},
                                     {"uptime_s", node.uptime_s}});
  }
  return json::Object{{"running", running},
                      {"pid", pid},
                      {"stale_lock", stale_lock},
                      {"healthy", health.ok},
                      {"verdict", health.verdict},
                      {"ranks", std::move(rank_list)},
                      {"nodes", std::move(node_list)},
                      {"fabric", fabric},
                      {"running_requests", running_requests},
                      {"waiting_requests", waiting_requests},
                      {"tokens_per_s", tokens_per_s},
                      {"acceptance", acceptance}};
}

}  // namespace tandem::cluster
