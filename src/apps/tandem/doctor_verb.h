// `tandem doctor`: all checks on both machines before a start. `tandem agent`: what the head asks
// the worker's program to do, over ssh.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

void add_doctor_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
