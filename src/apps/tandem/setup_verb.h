// `tandem setup`: writes cluster.toml from flags, from what the machines say, from the vLLM
// recipe's .env, and asks for the rest.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_setup_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
