// `tandem bench compare BEFORE AFTER`.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_bench_compare_verb(CLI::App& parent, int& exit_code);

}  // namespace tandem::apps
