#include "operations/cluster/serve_command.h"

#include <fmt/format.h>

#include <map>

namespace tandem::cluster {
namespace {

constexpr const char* kStallSeconds = "6";  // a lost link is named within 10 s

}  // namespace

Result<std::vector<std::string>> serve_command(const ClusterConfig& config) {
  if (config.model_of(config.head) != config.model_of(config.worker)) {
    return invalid_argument(
        "[head] model is {}, [worker] model is {}; both machines need the checkpoint at the same "
        "path (a symbolic link will do)",
        config.model_of(config.head), config.model_of(config.worker));
  }
  TANDEM_ASSIGN(auto settings, profile_settings(config.profile));
  settings["stall-s"] = kStallSeconds;
  for (const auto& [name, value] : config.serve) {
    settings[name] = value;
  }
  settings["model"] = config.model_of(config.head);
  settings["host"] = config.host;
  settings["port"] = std::to_string(config.port);
  settings["tp"] = "2";
  settings["hosts"] = config.head.address + "," + config.worker.address;
  settings["model-name"] = config.model_name;
  settings["api-keys-file"] = config.api_keys_file;
  settings["state-dir"] = config.head.state_dir;
  settings["ssh-command"] = "ssh " + joined(config.ssh_options, " ");
  const std::size_t at = config.worker.ssh.find('@');
  if (at != std::string::npos) {
    settings["ssh-command"] += " -l " + config.worker.ssh.substr(0, at);
  }
  std::vector<std::string> command = {config.binary, "serve"};
  for (const auto& [name, value] : settings) {
    if (!value.empty()) {
      command.push_back("--" + name);
      if (value != "true") {
        command.push_back(value);
      }
    }
  }
  return command;
}

std::string server_url(const ClusterConfig& config) {
  const bool any = config.host == "0.0.0.0" || config.host == "::";
  return fmt::format("http://{}:{}", any ? "127.0.0.1" : config.host, config.port);
}

}  // namespace tandem::cluster
