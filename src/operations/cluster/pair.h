// Pair: starts and stops the two ranks as one thing. The head runs `tandem serve` in a session of
// its own; that brings up the worker's rank and takes it down again, so there is one process to
// watch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "foundation/base/status.h"
#include "operations/cluster/cluster_config.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

// One line for the owner.
using Say = std::function<void(const std::string&)>;

enum class StartResult {
  kReady,
  kAlreadyRunning,  // healthy, or on its way
  kRefused,         // something is wrong before anything was started
  kFailed,          // it was started and did not become ready; nothing is left running
};

struct StartOutcome {
  StartResult result = StartResult::kReady;
  std::string message;
  pid_t pid = 0;  // of `tandem serve`
};

// What the server says of itself; ok is false also if nobody answers.
struct Health {
  bool answers = false;
  bool ok = false;
  std::string verdict;
};
Health read_health(const std::string& url);

// The log of the current run: both ranks' lines in the order in which they were written.
std::string log_path(const std::string& state_dir);

// Checks, starts, and waits until the server is healthy. `say` gets a line per phase and the
// server's own start-up lines.
StartOutcome start_pair(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                        const Say& say);

// Ends the run and whatever it left on the worker. Fine if nothing runs.
// ERRORS: kDeadlineExceeded if a process does not end even when it is killed.
Status stop_pair(const ClusterConfig& config, HostSystem& head, HostSystem& worker, const Say& say);

}  // namespace tandem::cluster
