// `tandem verify URL`: the live verifier.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_verify_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
