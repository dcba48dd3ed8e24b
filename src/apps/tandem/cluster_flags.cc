#include "apps/tandem/cluster_flags.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tandem::apps {

void add_cluster_flag(CLI::App& verb, std::string& file) {
  file = kDefaultClusterFile;
  verb.add_option("--config", file, "the pair's cluster.toml")->capture_default_str();
}

Result<Cluster> open_cluster(const std::string& file) {
  std::ifstream in(file);
  if (!in) {
    return not_found("{} cannot be read; make it with `tandem setup`, or name one with --config",
                     file);
  }
  std::ostringstream text;
  text << in.rdbuf();
  auto config = cluster::parse_cluster_config(text.str());
  if (!config.ok()) {
    return config.status().with_context(file);
  }
  Cluster cluster;
  cluster.config = std::move(*config);
  cluster.head = cluster::make_local_system();
  // One ssh connection for all calls, if there is a place for its socket.
  const std::string& state_dir = cluster.config.head.state_dir;
  std::error_code no_folder;
  std::filesystem::create_directories(state_dir, no_folder);
  const bool writable = !no_folder && access(state_dir.c_str(), W_OK) == 0;
  cluster.worker = cluster::make_ssh_system(
      cluster::worker_target(cluster.config, writable ? state_dir : std::string()));
  return cluster;
}

}  // namespace tandem::apps
