// `tandem bench URL` and `tandem bench compare A B`.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_bench_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
