// What all two-machine verbs need: cluster.toml, and the two machines behind it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"
#include "operations/cluster/host_system.h"

namespace tandem::apps {

inline constexpr const char* kDefaultClusterFile = "/etc/tandem/cluster.toml";

struct Cluster {
  cluster::ClusterConfig config;
  std::unique_ptr<cluster::HostSystem> head;
  std::unique_ptr<cluster::HostSystem> worker;
};

// Adds --config, whose value goes to `file`.
void add_cluster_flag(CLI::App& verb, std::string& file);

// ERRORS: kNotFound (with what to type), kInvalidArgument naming every bad key.
Result<Cluster> open_cluster(const std::string& file);

}  // namespace tandem::apps
