// `tandem model inspect|check|synth`: looks at checkpoints and writes synthetic ones.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

// Adds the verb; it sets exit_code when it has run: 0, 1 for a checkpoint with problems or a failed
// write; bad arguments are CLI11's own codes, over 100.
void add_model_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
