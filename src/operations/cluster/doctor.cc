#include "operations/cluster/doctor.h"

#include <chrono>

#include "operations/cluster/link_probe.h"

namespace tandem::cluster {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void check_node(const NodeUnderTest& under, Findings& out) {
  check_programs(under, out);
  check_interface(under, out);
  check_roce(under, out);
  check_memory(under, out);
  check_oom_killers(under, out);
  check_accelerator(under, out);
  check_cpu(under, out);
  check_ports(under, out);
  check_disk(under, out);
  check_leftovers(under, out);
}

// The worker's clock against ours, from one remote `date` between two looks at our own.
void check_clock(const NodeUnderTest& worker, Findings& out) {
  const double before = now_ms();
  const CommandResult date = worker.system->run({"date", "+%s%N"}, 5'000);
  const double after = now_ms();
  if (date.ok()) {
    const double theirs = std::strtod(date.out.c_str(), nullptr) * 1e-6;
    out.push_back(clock_finding(theirs - (before + after) / 2, (after - before) / 2));
  }
}

bool check_ssh(const NodeUnderTest& worker, Findings& out) {
  const CommandResult hello = worker.system->run({"echo", "tandem"}, 8'000);
  const std::string& host = worker.node->ssh;
  if (hello.ok() && trimmed(hello.out) == "tandem") {
    out.push_back({"ssh", "worker", Level::kPass, host + " answers", "", ""});
    return true;
  }
  if (hello.ok()) {
    out.push_back({"ssh", "worker", Level::kFail,
                   fmt::format("{} prints more than the command's output: '{}'", host,
                               trimmed(hello.out).substr(0, 60)),
                   "programs read this output", "remove the output from the worker's ~/.bashrc"});
    return false;
  }
  out.push_back(
      {"ssh", "worker", Level::kFail,
       hello.timed_out ? host + " does not answer within 8 s"
                       : fmt::format("{}: {}", host, trimmed(hello.err)),
       "the head starts and stops the worker over ssh, without a password",
       fmt::format("ssh-copy-id {}; then `ssh {} true` must work without a question", host, host)});
  return false;
}

double port_gigabits(const NodeUnderTest& under) {
  for (const RocePort& port : read_roce_ports(*under.system)) {
    if (port.candidate()) {
      return std::strtod(port.rate.c_str(), nullptr);
    }
  }
  return 0;
}

void check_link(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  const auto measured = measure_link(*head.config);
  if (!measured.ok()) {
    out.push_back({"link", "pair", Level::kFail, measured.status().message(),
                   "the ranks must reach each other on the fabric addresses",
                   fmt::format("check cable and firewall between {} and {}", head.node->address,
                               worker.node->address)});
    return;
  }
  out.push_back(
      link_finding(measured->gigabytes_per_s, measured->round_trip_us, port_gigabits(head)));
}

}  // namespace

DoctorReport run_doctor(const ClusterConfig& config, HostSystem& head_system,
                        HostSystem& worker_system, const DoctorOptions& options) {
  DoctorReport report;
  const NodeUnderTest head{&head_system, "head", &config, &config.head};
  const NodeUnderTest worker{&worker_system, "worker", &config, &config.worker};
  Findings& out = report.findings;
  const bool reachable = check_ssh(worker, out);
  check_node(head, out);
  if (!reachable) {
    out.push_back({"worker_checks", "worker", Level::kNote, "skipped: no ssh", "", ""});
    return report;
  }
  check_node(worker, out);
  check_same_program(head, worker, out);
  check_same_kernel(head, worker, out);
  check_clock(worker, out);
  check_subnet(head, worker, out);
  check_mtu_path(head, worker, out);
  if (options.checkpoint && config.engine == "tandem") {
    check_same_checkpoint(head, worker, out);
  }
  if (options.measure_link) {
    check_link(head, worker, out);
  }
  return report;
}

std::vector<std::string> apply_fixes(const DoctorReport& report, HostSystem& head,
                                     HostSystem& worker) {
  std::vector<std::string> out;
  for (const Finding& finding : report.findings) {
    if (finding.safe_fix.empty()) {
      continue;
    }
    HostSystem& system = finding.node == "worker" ? worker : head;
    const CommandResult result = system.run(finding.safe_fix, 10'000);
    out.push_back(fmt::format("{} {}: {}{}", finding.node, finding.id,
                              joined(finding.safe_fix, " "),
                              result.ok() ? "" : "  FAILED: " + trimmed(result.err)));
  }
  return out;
}

}  // namespace tandem::cluster
