// up, down, restart, status, logs, smoke: the pair as one appliance.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_pair_verbs(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
