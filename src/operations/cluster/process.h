// Child processes without a shell: run one to its end with a deadline, or start one and keep its
// pipes. Each child leads its own process group, so that a deadline ends its children too.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

// Runs to the end or the deadline; then the whole group is killed and timed_out is set. At most
// 16 MiB of each stream are kept.
CommandResult run_process(const std::vector<std::string>& argv, std::int64_t timeout_ms);

struct SpawnOptions {
  bool pipe_stdin = false;
  bool pipe_output = false;              // stdout and stderr into one pipe
  std::string output_file;               // or appended to this file
  bool new_session = false;              // detached from the terminal
  std::vector<std::string> environment;  // "NAME=value" added to ours
  bool die_with_parent = false;
};

struct Child {
  pid_t pid = -1;
  int stdin_fd = -1;
  int output_fd = -1;  // non-blocking
};

// ERRORS: kUnavailable if the program cannot be started.
Result<Child> spawn_process(const std::vector<std::string>& argv, const SpawnOptions& options);

// The exit code if the child has ended (128 + n for signal n), or -1 while it runs.
int try_wait(pid_t pid);

// TERM to the group, then KILL after `grace_ms`. Returns the exit code.
int stop_group(pid_t pid, std::int64_t grace_ms);

}  // namespace tandem::cluster
