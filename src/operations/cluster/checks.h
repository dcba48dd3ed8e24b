// The doctor's checks: pure functions from what a machine answers to findings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operations/cluster/cluster_config.h"
#include "operations/cluster/finding.h"
#include "operations/cluster/gid.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

// One machine under test.
struct NodeUnderTest {
  HostSystem* system = nullptr;
  std::string name;  // "head" or "worker"
  const ClusterConfig* config = nullptr;
  const NodeConfig* node = nullptr;
};

// Each appends findings about one machine.
using Findings = std::vector<Finding>;

// Memory: the contiguous-memory accounting fault, the plan against MemAvailable, swap, /dev/shm.
void check_memory(const NodeUnderTest& under, Findings& out);
// User-space OOM killers that take a full unified memory for a fault.
void check_oom_killers(const NodeUnderTest& under, Findings& out);
// RDMA ports, rate, PCIe lanes, twins, GID index.
void check_roce(const NodeUnderTest& under, Findings& out);
// The fabric address on an interface that is up; its MTU.
void check_interface(const NodeUnderTest& under, Findings& out);
// GPU, driver, NCCL library, locked memory.
void check_accelerator(const NodeUnderTest& under, Findings& out);
// Big cores and the pinning that follows.
void check_cpu(const NodeUnderTest& under, Findings& out);
// The API's port (head) and free disk space.
void check_ports(const NodeUnderTest& under, Findings& out);
void check_disk(const NodeUnderTest& under, Findings& out);
// A lock or ranks that a dead run left behind.
void check_leftovers(const NodeUnderTest& under, Findings& out);
// The program and mpirun can be started.
void check_programs(const NodeUnderTest& under, Findings& out);

// Two machines against each other: same kernel, program, checkpoint; different addresses; clocks.
void check_same_program(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out);
void check_same_kernel(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out);
void check_same_checkpoint(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out);
void check_mtu_path(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out);
void check_subnet(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out);
Finding clock_finding(double offset_ms, double uncertainty_ms);
// Measured on the fabric by two of our own processes.
Finding link_finding(double gigabytes_per_s, double round_trip_us, double port_gigabits);

// The command whose output is a checkpoint's manifest: "HASH SIZE NAME" for each file; shards by
// their first MiB, which holds the header, everything else in full.
std::vector<std::string> manifest_command(const std::string& folder);

// What differs between two manifests, one line a file; empty = same content.
std::vector<std::string> manifest_difference(const std::string& head, const std::string& worker);

// Cores with the highest cpu_capacity, as "5-9,15-19"; empty if all are equal or unknown.
std::string big_cores(HostSystem& system);

// -1, 0 or 1 for dotted version numbers.
int compare_versions(const std::string& a, const std::string& b);

// Bytes of a file like /proc/meminfo: "MemAvailable" -> bytes, or -1.
std::int64_t meminfo_bytes(const std::string& text, const std::string& key);

}  // namespace tandem::cluster
