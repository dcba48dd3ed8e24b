// The pair with engine = "vllm": one container per machine, worker first, head first when it ends.
// Start and stop are reached through start_pair and stop_pair.
#pragma once

#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"
#include "operations/cluster/host_system.h"
#include "operations/cluster/pair.h"

namespace tandem::cluster {

// What the container runtime of a machine says of the rank: "running", "exited", ... or "" if there
// is none.
std::string container_state(const ClusterConfig& config, HostSystem& system);

// As start_pair. Refused: ssh, image missing or different on the machines, RoCE, a lone rank.
StartOutcome start_vllm(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                        const Say& say);

// As stop_pair; both containers are removed. ERRORS: kUnavailable if one cannot be.
Status stop_vllm(const ClusterConfig& config, HostSystem& head, HostSystem& worker, const Say& say);

// The last `lines` lines of both containers in the order of their time stamps, each with the name
// of its machine ahead.
std::vector<std::string> vllm_log(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                                  std::size_t lines);

}  // namespace tandem::cluster
