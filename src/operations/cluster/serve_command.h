// The `tandem serve` command line that a cluster.toml stands for.
#pragma once

#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"

namespace tandem::cluster {

// ERRORS: kInvalidArgument (unknown profile; checkpoint folders that differ between the machines).
Result<std::vector<std::string>> serve_command(const ClusterConfig& config);

// http://HOST:PORT as the head itself reaches the server.
std::string server_url(const ClusterConfig& config);

}  // namespace tandem::cluster
