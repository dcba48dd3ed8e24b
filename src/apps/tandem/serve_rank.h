// One rank's life: join the job, load, serve (rank 0) or follow (the others), leave.
#pragma once

#include "apps/tandem/serve_config.h"

namespace tandem::apps {

// A job of one rank, in this process. The exit code of `tandem serve`.
int serve_alone(const ServeConfig& config);

// One rank of an MPI job that launch_ranks() started. The exit code of this rank.
int serve_as_rank(const ServeConfig& config);

}  // namespace tandem::apps
