// `tandem eval URL`: graded tasks.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_eval_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
