// `tandem serve`: the server on one rank, or on several under mpirun; `tandem config`: the config
// it would run with.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

// Adds serve, config, and rank, which the launcher runs for each rank of a job.
void add_serve_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
