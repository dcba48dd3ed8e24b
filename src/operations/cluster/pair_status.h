// PairStatus: what both machines and the server say now, as one page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "operations/cluster/cluster_config.h"
#include "operations/cluster/host_system.h"
#include "operations/cluster/pair.h"

namespace tandem::cluster {

struct RankStatus {
  std::int64_t rank = 0;
  std::string host;
  bool alive = false;
};

struct NodeStatus {
  std::string name;  // "head" or "worker"
  bool answers = false;
  std::int64_t available_bytes = -1;  // MemAvailable
  std::int64_t total_bytes = -1;
  double celsius = -1;  // hottest zone; -1: unknown
  std::int64_t uptime_s = -1;
};

struct PairStatus {
  bool running = false;  // a live lock
  std::int64_t pid = 0;
  bool stale_lock = false;
  Health health;
  std::vector<RankStatus> ranks;
  std::vector<NodeStatus> nodes;
  std::string fabric;  // "enp1s0f0np0 10.0.0.1 <-> 10.0.0.2"
  double running_requests = 0;
  double waiting_requests = 0;
  double tokens_per_s = 0;  // generated, over the time between two looks
  double acceptance = -1;   // accepted / drafted since start; -1: no drafts

  // 0 healthy, 1 not running, 5 running and unhealthy.
  int exit_code() const;
  std::string to_text() const;
  json::Value to_json() const;
};

PairStatus read_status(const ClusterConfig& config, HostSystem& head, HostSystem& worker);

// The sum over all labels of a metric in a Prometheus page; 0 if it is not there.
double metric_sum(std::string_view page, std::string_view name);

}  // namespace tandem::cluster
