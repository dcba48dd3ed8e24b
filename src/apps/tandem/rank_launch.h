// Starts the ranks of one job under mpirun and stays beside them: passes a stop on, and gives back
// the job's exit code. If this process dies, so does the job.
#pragma once

#include <string>
#include <vector>

#include "apps/tandem/serve_config.h"

namespace tandem::apps {

// The mpirun command line for this config; `self` is the path of this binary. Pure.
std::vector<std::string> rank_command(const ServeConfig& config, const std::string& self,
                                      const std::vector<std::string>& rank_flags);

// The smallest IPv4 network that holds all of "10.0.0.1,10.0.0.2", as "10.0.0.0/30"; "" if one of
// them is no IPv4 address.
std::string common_network(const std::string& hosts);

// Runs the job until it ends. The exit code of `tandem serve`.
int launch_ranks(const ServeConfig& config, const std::vector<std::string>& rank_flags);

}  // namespace tandem::apps
