#include "apps/tandem/serve_verb.h"

#include <cstdio>
#include <memory>

#include "apps/tandem/exit_codes.h"
#include "apps/tandem/port_check.h"
#include "apps/tandem/rank_launch.h"
#include "apps/tandem/rank_model.h"
#include "apps/tandem/serve_config.h"
#include "apps/tandem/serve_rank.h"
#include "apps/tandem/stop_signal.h"
#include "model/v4/open_model.h"

namespace tandem::apps {
namespace {

int refuse(const std::string& message, int exit_code) {
  std::fprintf(stderr, "tandem serve: %s\n", message.c_str());
  return exit_code;
}

// All that can be known to fail before the ranks start, in one place and in milliseconds.
int preflight(const ServeConfig& config) {
  const PortCheck port = check_port(config.host, config.port);
  switch (port.state) {
    case PortState::kFree:
      break;
    case PortState::kTandem:
      return refuse(port.message, kExitAlreadyRunning);
    case PortState::kTaken:
      return refuse(port.message, kExitRefused);
    case PortState::kBadAddress:
      return refuse(port.message, kExitUsage);
  }
  const auto opened = v4::open_model(config.model, static_cast<int>(config.tp));
  if (!opened.ok()) {
    return refuse(opened.status().message(), kExitFailure);
  }
  const auto tokenizer = load_tokenizer(*opened);
  if (!tokenizer.ok()) {
    return refuse(tokenizer.status().message(), kExitFailure);
  }
  return kExitOk;
}

int run_serve(ConfigLoader& loader) {
  StopSignal::install();
  const Status resolved = loader.resolve();
  if (!resolved.ok()) {
    return refuse(resolved.message(), kExitUsage);
  }
  const ServeConfig& config = loader.config();
  const int problem = preflight(config);
  if (problem != kExitOk) {
    return problem;
  }
  return config.tp == 1 ? serve_alone(config) : launch_ranks(config, loader.to_flags());
}

int run_rank(ConfigLoader& loader) {
  StopSignal::install();
  const Status resolved = loader.resolve();
  return resolved.ok() ? serve_as_rank(loader.config()) : refuse(resolved.message(), kExitUsage);
}

int run_config(ConfigLoader& loader) {
  const Status resolved = loader.resolve();
  std::fputs(loader.to_toml().c_str(), stdout);
  return resolved.ok() ? kExitOk : refuse(resolved.message(), kExitUsage);
}

using Runner = int (*)(ConfigLoader&);

CLI::App* add(CLI::App& app, const char* name, const char* help, Runner run, int& exit_code) {
  CLI::App* verb = app.add_subcommand(name, help);
  auto loader = std::make_shared<ConfigLoader>();
  loader->add_flags(*verb);
  verb->callback([loader, run, &exit_code] { exit_code = run(*loader); });
  return verb;
}

}  // namespace

void add_serve_verb(CLI::App& app, int& exit_code) {
  add(app, "serve", "serve a checkpoint over HTTP", run_serve, exit_code);
  add(app, "config", "print the config that serve would run with", run_config, exit_code);
  add(app, "rank", "one rank of a job; started by serve", run_rank, exit_code)->group("");
}

}  // namespace tandem::apps
