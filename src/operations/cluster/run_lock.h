// RunLock: the trace of a run on the head, "PID BOOT_ID" in STATE_DIR/lock. The pid is that of
// `tandem serve`; with the boot's id a pid from before a reboot is never taken for a live one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "foundation/base/status.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

struct RunLock {
  pid_t pid = 0;
  bool alive = false;  // the process runs, in this boot
};

std::string lock_path(const std::string& state_dir);

// Nothing if there is no lock.
std::optional<RunLock> read_lock(HostSystem& system, const std::string& state_dir);

// Replaces what is there. ERRORS: kPermissionDenied, kResourceExhausted (disk full) naming the
// file.
Status write_lock(HostSystem& system, const std::string& state_dir, pid_t pid);

void remove_lock(const std::string& state_dir);

}  // namespace tandem::cluster
