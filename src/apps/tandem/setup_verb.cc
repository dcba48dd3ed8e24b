#include "apps/tandem/setup_verb.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "apps/tandem/cluster_flags.h"
#include "apps/tandem/exit_codes.h"
#include "operations/cluster/discover.h"

namespace tandem::apps {
namespace {

struct SetupFlags {
  std::string output;
  std::string env_file;
  std::string worker;
  std::string head_address;
  std::string worker_address;
  std::string interface;
  std::string model;
  std::string binary;
  std::string profile;
  std::vector<std::string> ssh_options;
  std::int64_t port = 0;
  bool force = false;
};

int fail(const std::string& message, int code) {
  std::fprintf(stderr, "tandem setup: %s\n", message.c_str());
  return code;
}

// Asks on a terminal; elsewhere the default stands, and an empty one is a missing flag.
class Questions {
 public:
  void ask(std::string& value, const char* flag, const std::string& question,
           const std::string& suggestion) {
    if (!value.empty()) {
      return;
    }
    value = suggestion;
    if (isatty(STDIN_FILENO) == 1) {
      std::printf("%s [%s]: ", question.c_str(), suggestion.c_str());
      std::fflush(stdout);
      std::string line;
      if (std::getline(std::cin, line) && !line.empty()) {
        value = line;
      }
    }
    if (value.empty()) {
      missing_ += std::string(missing_.empty() ? "" : ", ") + flag;
    }
  }

  const std::string& missing() const { return missing_; }

 private:
  std::string missing_;
};

Result<cluster::ClusterConfig> imported(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return not_found("{} cannot be read", path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  TANDEM_ASSIGN(const cluster::ImportedConfig result, cluster::import_env(text.str()));
  for (const cluster::ImportedVariable& variable : result.variables) {
    std::printf("  %-28s %s%s\n", variable.name.c_str(),
                variable.became.empty() ? "not used: " : ("-> " + variable.became + "  ").c_str(),
                variable.note.c_str());
  }
  return result.config;
}

void take_flags(const SetupFlags& flags, cluster::ClusterConfig& config) {
  const auto set = [](std::string& target, const std::string& value) {
    if (!value.empty()) {
      target = value;
    }
  };
  set(config.worker.ssh, flags.worker);
  set(config.head.address, flags.head_address);
  set(config.worker.address, flags.worker_address);
  set(config.head.interface, flags.interface);
  set(config.model, flags.model);
  set(config.binary, flags.binary);
  set(config.profile, flags.profile);
  if (!flags.ssh_options.empty()) {
    config.ssh_options = flags.ssh_options;
  }
  if (flags.port != 0) {
    config.port = flags.port;
  }
}

// The fabric of this machine: the flag, or the best interface that was found.
void find_head(cluster::ClusterConfig& config, cluster::HostSystem& head, Questions& questions,
               std::string& peer) {
  std::string suggestion;
  std::string address;
  for (const cluster::FabricInterface& found : cluster::find_fabric(head)) {
    const bool wanted = config.head.interface.empty() || config.head.interface == found.name;
    if (wanted && suggestion.empty()) {
      suggestion = found.name;
      address = found.address;
      peer = found.peers.empty() ? "" : found.peers.front();
    }
  }
  questions.ask(config.head.interface, "--interface", "network interface of the QSFP cable",
                suggestion);
  questions.ask(config.head.address, "--head-address", "its address on this machine", address);
}

// The worker: reached by ssh, then asked for its own address beside ours.
void find_worker(cluster::ClusterConfig& config, Questions& questions, const std::string& peer) {
  questions.ask(config.worker.ssh, "--worker", "how to reach the second machine (user@host)", peer);
  if (config.worker.ssh.empty()) {
    return;
  }
  const auto worker = cluster::make_ssh_system(cluster::worker_target(config, ""));
  const cluster::CommandResult hello = worker->run({"echo", "tandem"}, 8'000);
  std::printf("ssh %s: %s\n", config.worker.ssh.c_str(),
              hello.ok() ? "answers" : cluster::trimmed(hello.err).c_str());
  cluster::LocalAddress beside;
  if (hello.ok()) {
    beside = cluster::address_beside(*worker, config.head.address);
  }
  questions.ask(config.worker.address, "--worker-address", "its address on the cable",
                beside.address);
  if (config.worker.interface.empty()) {
    config.worker.interface = beside.interface.empty() ? config.head.interface : beside.interface;
  }
}

int write(const SetupFlags& flags, const cluster::ClusterConfig& config) {
  const std::string text = cluster::to_toml(config);
  const auto checked = cluster::parse_cluster_config(text);
  if (!checked.ok()) {
    return fail(checked.status().message(), kExitUsage);
  }
  if (std::filesystem::exists(flags.output) && !flags.force) {
    return fail(flags.output + " is there already; --force replaces it", kExitFailure);
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(flags.output).parent_path(), ignored);
  std::ofstream file(flags.output, std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    return fail(flags.output + " cannot be written", kExitFailure);
  }
  std::printf("%s\nwrote %s; next: tandem doctor, then tandem up\n", text.c_str(),
              flags.output.c_str());
  return kExitOk;
}

int run_setup(const SetupFlags& flags) {
  cluster::ClusterConfig config;
  if (!flags.env_file.empty()) {
    auto from_env = imported(flags.env_file);
    if (!from_env.ok()) {
      return fail(from_env.status().message(), kExitUsage);
    }
    config = std::move(*from_env);
  }
  take_flags(flags, config);
  Questions questions;
  std::string peer;
  const auto head = cluster::make_local_system();
  find_head(config, *head, questions, peer);
  find_worker(config, questions, peer);
  questions.ask(config.model, "--model", "checkpoint folder, at the same path on both", "");
  if (!questions.missing().empty()) {
    return fail("not known and not to be found out: " + questions.missing() +
                    "; give them as flags, or run this on a terminal",
                kExitUsage);
  }
  return write(flags, config);
}

}  // namespace

void add_setup_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<SetupFlags>();
  flags->output = kDefaultClusterFile;
  CLI::App* verb = app.add_subcommand("setup", "write cluster.toml for two machines");
  verb->add_option("--output", flags->output, "file to write")->capture_default_str();
  verb->add_option("--import-env", flags->env_file, "the vLLM recipe's .env: what it becomes");
  verb->add_option("--worker", flags->worker, "user@host of the second machine");
  verb->add_option("--head-address", flags->head_address, "this machine's address on the cable");
  verb->add_option("--worker-address", flags->worker_address, "the second machine's");
  verb->add_option("--interface", flags->interface, "this machine's interface of the cable");
  verb->add_option("--model", flags->model, "checkpoint folder");
  verb->add_option("--binary", flags->binary, "path of tandem on both machines");
  verb->add_option("--profile", flags->profile, "balanced, coding, many or small");
  verb->add_option("--port", flags->port, "port of the API");
  verb->add_option("--ssh-option", flags->ssh_options, "further word for ssh; may be repeated")
      ->allow_extra_args(false);
  verb->add_flag("--force", flags->force, "replace a file that is there");
  verb->callback([flags, &exit_code] { exit_code = run_setup(*flags); });
}

}  // namespace tandem::apps
