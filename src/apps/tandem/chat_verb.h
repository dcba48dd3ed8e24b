// `tandem chat`: a terminal client for any OpenAI-compatible server.
#pragma once

#include <CLI/CLI.hpp>

namespace tandem::apps {

// Adds the verb; it sets exit_code when it has run.
void add_chat_verb(CLI::App& app, int& exit_code);

}  // namespace tandem::apps
