// The doctor: all checks on both machines, before any start. It needs seconds and changes nothing
// unless asked to.
#pragma once

#include "operations/cluster/checks.h"

namespace tandem::cluster {

struct DoctorOptions {
  bool measure_link = true;  // runs our own probe on both machines
  bool checkpoint = true;    // compares the checkpoints
};

// Runs everything. If the worker does not answer over ssh, its checks are skipped and said so.
DoctorReport run_doctor(const ClusterConfig& config, HostSystem& head, HostSystem& worker,
                        const DoctorOptions& options);

// Runs the safe fixes of a report; returns one line for each: what was done, or why not.
std::vector<std::string> apply_fixes(const DoctorReport& report, HostSystem& head,
                                     HostSystem& worker);

}  // namespace tandem::cluster
