// Field cases of group D on recorded machines. Where each case is tested:
//   D-01 GID index per node, at every start      gid_test Gid.*; Doctor.D01*
//   D-02 selectors, DOWN siblings, crossed cable gid_test Selector.*, Ports.*; Doctor.D02*
//   D-04 kernel that breaks registration         Doctor.D04*
//   D-05 wrong address advertised                Doctor.D05*; tests/cluster (sockets)
//   D-06 a rank dies or wedges                   verdict_test; tests/cluster (faults)
//   D-09 restart storm                           units_test; state_test Attempts.*
//   D-10 unified memory                          Doctor.D10*
//   D-11 OOM killers                             Doctor.D11*; verdict_test
//   D-13 disk space                              Doctor.D13*
//   E-07 same revision on both                   Doctor.E07*
#include "operations/cluster/doctor.h"

#include <gmock/gmock.h>

#include "tests/unit/cluster/trees.h"

namespace tandem::cluster {
namespace {

using ::testing::HasSubstr;

constexpr const char* kManifest =
    "aa 1200 config.json\nbb 9000 tokenizer.json\ncc 5000000000 model-00001-of-00002.safetensors\n"
    "dd 5000000000 model-00002-of-00002.safetensors\n";

// A run of the doctor on the pair without the parts that need real processes.
DoctorReport diagnose(Pair& pair) {
  DoctorOptions options;
  options.measure_link = false;
  for (RecordedSystem* system : {&pair.head_system, &pair.worker_system}) {
    const std::string line = joined(manifest_command("/models/v4"), " ");
    if (system->run(manifest_command("/models/v4"), 0).exit_code == 127) {
      system->set_command(line, prints(kManifest));
    }
  }
  return run_doctor(pair.config, pair.head_system, pair.worker_system, options);
}

TEST(Doctor, AHealthyPairHasNothingToSay) {
  Pair pair;
  const DoctorReport report = diagnose(pair);
  EXPECT_EQ(report.worst(), Level::kPass) << report.to_text(false);
  EXPECT_EQ(report.exit_code(), 0);
  EXPECT_GT(report.findings.size(), 25U);
}

TEST(Doctor, EveryFindingThatIsNoPassSaysWhyAndWhatToDo) {
  Pair pair;
  pair.head_system.set_file("/sys/class/net/enp1s0f1np1/mtu", "1500");
  pair.head_system.set_file("/proc/swaps", "Filename\nswapfile\n");
  pair.worker_system.set_command("sh -c ulimit -l", prints("8192"));
  pair.worker_system.set_file("/proc/sys/kernel/osrelease", "6.14.0");
  const DoctorReport report = diagnose(pair);
  EXPECT_EQ(report.worst(), Level::kFail);
  for (const Finding& finding : report.findings) {
    if (finding.level >= Level::kWarn) {
      EXPECT_NE(finding.why, "") << finding.id;
      EXPECT_NE(finding.fix, "") << finding.id;
    }
  }
  EXPECT_THAT(report.to_text(false), HasSubstr("fix: ip link set enp1s0f1np1 mtu 9000"));
  EXPECT_THAT(json::dump(report.to_json()), HasSubstr("\"worst\":\"FAIL\""));
}

TEST(Doctor, SafeFixesAreTheOnlyOnesRun) {
  Pair pair;
  pair.head_system.set_file("/sys/class/net/enp1s0f1np1/mtu", "1500");
  pair.head_system.set_command("ip link set enp1s0f1np1 mtu 9000", prints(""));
  pair.worker_system.set_file("/proc/swaps", "Filename\nswapfile\n");
  const DoctorReport report = diagnose(pair);
  const auto lines = apply_fixes(report, pair.head_system, pair.worker_system);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "head mtu: ip link set enp1s0f1np1 mtu 9000");
  EXPECT_EQ(pair.head_system.ran().back(), "ip link set enp1s0f1np1 mtu 9000");
}

TEST(Doctor, NoSshSkipsTheWorkerAndSaysSo) {
  Pair pair;
  pair.worker_system.set_command("echo tandem", prints("", 255));
  const DoctorReport report = diagnose(pair);
  EXPECT_EQ(find(report.findings, "ssh", "worker").level, Level::kFail);
  EXPECT_THAT(find(report.findings, "ssh", "worker").fix, HasSubstr("ssh-copy-id spark2"));
  EXPECT_EQ(find(report.findings, "worker_checks", "worker").level, Level::kNote);
  pair.worker_system.set_command("echo tandem", prints("Welcome!\ntandem"));
  EXPECT_THAT(find(diagnose(pair).findings, "ssh", "worker").seen, HasSubstr("Welcome"));
}

TEST(Doctor, D01PinnedIndexThatMovedIsAFailure) {
  Pair pair;
  pair.config.worker.gid_index = 3;
  const Finding finding = find(diagnose(pair).findings, "gid", "worker");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_THAT(finding.seen, HasSubstr("pinned to 3"));
  EXPECT_THAT(finding.seen, HasSubstr("at 5 now"));
}

TEST(Doctor, D02OneOfTwoRailsIsAWarning) {
  Pair pair;
  EXPECT_EQ(find(diagnose(pair).findings, "roce_rails", "head").seen, "2 rails");
  pair.config.head.hca = "=rocep1s0f1";
  const Finding finding = find(diagnose(pair).findings, "roce_rails", "head");
  EXPECT_EQ(finding.level, Level::kWarn);
  EXPECT_THAT(finding.seen, HasSubstr("1 of 2 active ports"));
  pair.config.head.hca = "=rocep1s0f0";  // dark
  EXPECT_THAT(find(diagnose(pair).findings, "gid", "head").seen, HasSubstr("state DOWN"));
}

TEST(Doctor, SlowCableAndHalfTheLanes) {
  Pair pair;
  pair.head_system.set_file("/sys/class/infiniband/rocep1s0f1/ports/1/rate", "100 Gb/sec (4X EDR)");
  pair.worker_system.set_file("/sys/class/infiniband/rocep1s0f0/device/current_link_width", "1");
  const Findings findings = diagnose(pair).findings;
  EXPECT_EQ(find(findings, "roce_rate", "head").level, Level::kWarn);
  EXPECT_EQ(find(findings, "roce_pcie", "worker").level, Level::kWarn);
  EXPECT_EQ(link_finding(15.0, 40, 200).level, Level::kPass);
  EXPECT_EQ(link_finding(1.6, 40, 200).level, Level::kWarn);  // trained at 13 Gb/s
  EXPECT_EQ(link_finding(0.1, 40, 0).level, Level::kPass);    // no RDMA port: nothing promised
  EXPECT_EQ(link_finding(15.0, 9000, 200).level, Level::kWarn);
}

void set_cma(RecordedSystem& system, const std::string& total, const std::string& free) {
  std::string text = system.read_file("/proc/meminfo").value();
  text = text.substr(0, text.find("CmaTotal"));
  if (!total.empty()) {
    text += "CmaTotal: " + total + " kB\nCmaFree: " + free + " kB\n";
  }
  system.set_file("/proc/meminfo", text);
}

TEST(Doctor, D04ContiguousMemoryAccounting) {
  Pair pair;
  set_cma(pair.head_system, "0", "940000");
  const Finding bad = find(diagnose(pair).findings, "cma_accounting", "head");
  EXPECT_EQ(bad.level, Level::kFail);
  EXPECT_THAT(bad.seen, HasSubstr("kernel 6.17.0-1008-nvidia"));
  EXPECT_THAT(bad.fix, HasSubstr("kho=off"));
  EXPECT_THAT(bad.fix, HasSubstr("safe here"));
  EXPECT_TRUE(bad.safe_fix.empty());
  pair.head_system.set_file("/sys/kernel/kexec_crash_size", "268435456");
  EXPECT_THAT(find(diagnose(pair).findings, "cma_accounting", "head").fix, HasSubstr("NOT safe"));
  set_cma(pair.head_system, "65536", "60000");
  EXPECT_EQ(find(diagnose(pair).findings, "cma_accounting", "head").level, Level::kPass);
  set_cma(pair.head_system, "", "");
  EXPECT_EQ(find(diagnose(pair).findings, "cma_accounting", "head").level, Level::kPass);
  pair.worker_system.set_file("/proc/sys/kernel/osrelease", "7.0.0-31");
  EXPECT_EQ(find(diagnose(pair).findings, "kernel", "pair").level, Level::kWarn);
}

TEST(Doctor, D05AddressMustBeOnAnInterfaceThatIsUp) {
  Pair pair;
  pair.config.head.address = "192.168.7.7";
  const Finding missing = find(diagnose(pair).findings, "address", "head");
  EXPECT_EQ(missing.level, Level::kFail);
  EXPECT_THAT(missing.seen, HasSubstr("expected 192.168.7.7"));
  pair = Pair();
  pair.worker_system.set_file("/sys/class/net/enp1s0f0np0/operstate", "down");
  EXPECT_EQ(find(diagnose(pair).findings, "address", "worker").level, Level::kFail);
  pair = Pair();
  pair.head_system.set_command("ip -4 -o route get 192.168.100.2",
                               prints("192.168.100.2 via 10.0.0.1 dev wlan0 src 10.0.0.5"));
  EXPECT_THAT(find(diagnose(pair).findings, "subnet", "pair").seen, HasSubstr("wlan0"));
  pair = Pair();
  pair.config.worker.address = pair.config.head.address;
  EXPECT_THAT(find(diagnose(pair).findings, "subnet", "pair").seen, HasSubstr("both machines"));
}

TEST(Doctor, MtuMustAgreeAndPass) {
  Pair pair;
  pair.worker_system.set_file("/sys/class/net/enp1s0f0np0/mtu", "1500");
  EXPECT_EQ(find(diagnose(pair).findings, "mtu_path", "pair").level, Level::kFail);
  pair = Pair();
  pair.head_system.set_command("ping -c 2 -i 0.2 -W 1 -M do -s 8972 192.168.100.2", prints("", 1));
  EXPECT_THAT(find(diagnose(pair).findings, "mtu_path", "pair").seen, HasSubstr("full-size"));
}

void set_memory(RecordedSystem& system, int free_gib, int available_gib) {
  system.set_file("/proc/meminfo",
                  fmt::format("MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\n", 122 << 20,
                              free_gib << 20, available_gib << 20));
}

TEST(Doctor, D10FreeIsNotFree) {
  Pair pair;  // need 100 GiB, reserve 8
  set_memory(pair.head_system, 40, 114);
  const Finding cached = find(diagnose(pair).findings, "memory", "head");
  EXPECT_EQ(cached.level, Level::kPass);
  EXPECT_THAT(cached.seen, HasSubstr("will drop checkpoint pages"));
  set_memory(pair.head_system, 115, 116);
  EXPECT_EQ(find(diagnose(pair).findings, "memory", "head").level, Level::kPass);
  set_memory(pair.worker_system, 40, 105);
  const Finding low = find(diagnose(pair).findings, "memory", "worker");
  EXPECT_EQ(low.level, Level::kFail);
  EXPECT_THAT(low.seen, HasSubstr("need 100.0 + reserve 8.0 GiB, available 105.0"));
  EXPECT_THAT(low.fix, HasSubstr("chrome 9.0 GiB, gnome-shell 4.0 GiB, Xorg 1.0 GiB"));
  pair.head_system.set_command("df -B1 --output=size /dev/shm", prints("size\n68719476736"));
  EXPECT_EQ(find(diagnose(pair).findings, "shm", "head").level, Level::kWarn);
}

constexpr const char* kActive =
    "systemctl is-active earlyoom systemd-oomd nohang nohang-desktop oomd dgx-anti-oom";
constexpr const char* kEnabled =
    "systemctl is-enabled earlyoom systemd-oomd nohang nohang-desktop oomd dgx-anti-oom";

TEST(Doctor, D11OomKillersOnEitherNode) {
  Pair pair;
  pair.worker_system.set_command(kActive, prints("active\ninactive\ninactive\n", 3));
  const Finding active = find(diagnose(pair).findings, "oom_killer", "worker");
  EXPECT_EQ(active.level, Level::kFail);
  EXPECT_THAT(active.seen, HasSubstr("earlyoom is active on the worker"));
  EXPECT_EQ(find(diagnose(pair).findings, "oom_killer", "head").level, Level::kPass);
  pair.config.ignore_oom_killers = true;
  EXPECT_EQ(find(diagnose(pair).findings, "oom_killer", "worker").level, Level::kWarn);
  pair.config.ignore_oom_killers = false;
  pair.worker_system.set_file("/etc/default/earlyoom", "EARLYOOM_ARGS=\"--avoid '^(tandem)$'\"");
  EXPECT_EQ(find(diagnose(pair).findings, "oom_killer", "worker").level, Level::kNote);
  pair = Pair();
  pair.head_system.set_command(kEnabled, prints("enabled\n"));
  EXPECT_THAT(find(diagnose(pair).findings, "oom_killer", "head").seen, HasSubstr("next boot"));
  pair.head_system.set_command(kActive, prints("inactive\nactive\n"));
  pair.head_system.set_command(kEnabled, prints("disabled\n"));
  EXPECT_EQ(find(diagnose(pair).findings, "oom_killer", "head").level, Level::kWarn);
  pair.head_system.set_command(kActive, prints("no\nno\nno\nno\nno\nactive\n"));
  EXPECT_THAT(find(diagnose(pair).findings, "oom_killer", "head").seen, HasSubstr("dgx-anti-oom"));
}

TEST(Doctor, D13DiskSpaceIsPerNode) {
  Pair pair;
  pair.worker_system.set_command("df -B1 --output=avail /var/lib/tandem", prints("Avail\n1048576"));
  EXPECT_EQ(find(diagnose(pair).findings, "disk", "worker").level, Level::kFail);
  EXPECT_EQ(find(diagnose(pair).findings, "disk", "head").level, Level::kPass);
  pair.worker_system.set_command("df -B1 --output=avail /var/lib/tandem",
                                 prints("Avail\n536870912"));
  EXPECT_EQ(find(diagnose(pair).findings, "disk", "worker").level, Level::kWarn);
}

TEST(Doctor, E07CheckpointsAreCompared) {
  const std::string line = joined(manifest_command("/models/v4"), " ");
  Pair pair;
  EXPECT_EQ(find(diagnose(pair).findings, "checkpoint", "pair").level, Level::kPass);
  std::string other = kManifest;
  other.replace(other.find("dd 5"), 2, "ee");
  pair.worker_system.set_command(line, prints(other));
  const Finding header = find(diagnose(pair).findings, "checkpoint", "pair");
  EXPECT_EQ(header.level, Level::kFail);
  EXPECT_THAT(header.seen, HasSubstr("model-00002-of-00002.safetensors"));
  other = kManifest;
  pair.worker_system.set_command(line, prints(other.substr(0, other.find("dd 5"))));
  EXPECT_THAT(find(diagnose(pair).findings, "checkpoint", "pair").seen,
              HasSubstr("missing on the worker"));
  pair.worker_system.set_command(line, prints(""));
  EXPECT_EQ(find(diagnose(pair).findings, "checkpoint", "worker").level, Level::kFail);
}

TEST(Doctor, VersionSkewAndKnownBadVersions) {
  Pair pair;
  pair.worker_system.set_command("sha256sum -- /usr/bin/tandem",
                                 prints(std::string(64, 'e') + "  /usr/bin/tandem"));
  EXPECT_EQ(find(diagnose(pair).findings, "binary_digest", "pair").level, Level::kFail);
  pair.head_system.set_command("readlink -f /usr/lib/aarch64-linux-gnu/libnccl.so.2",
                               prints("/usr/lib/aarch64-linux-gnu/libnccl.so.2.28.9"));
  EXPECT_EQ(find(diagnose(pair).findings, "nccl", "head").level, Level::kWarn);
  pair.head_system.set_command(
      "nvidia-smi --query-gpu=name,driver_version,temperature.gpu --format=csv,noheader",
      prints("NVIDIA GB10, 580.126.09, 88"));
  EXPECT_EQ(find(diagnose(pair).findings, "driver", "head").level, Level::kWarn);
  EXPECT_EQ(find(diagnose(pair).findings, "temperature", "head").level, Level::kWarn);
  EXPECT_EQ(compare_versions("2.30.4", "2.30.3"), 1);
  EXPECT_EQ(compare_versions("2.30", "2.30.0"), 0);
  EXPECT_EQ(compare_versions("2.9.1", "2.28.0"), -1);
}

TEST(Doctor, PortsLeftoversCoresAndClock) {
  Pair pair;
  pair.head_system.set_command(
      "ss -Hltnp", prints("LISTEN 0 5 0.0.0.0:8000 0.0.0.0:* users:((\"python3\",pid=9,fd=3))"));
  EXPECT_THAT(find(diagnose(pair).findings, "port", "head").seen, HasSubstr("python3"));
  pair.head_system.set_file("/var/lib/tandem/lock", "4711 b0071d");
  const Finding stale = find(diagnose(pair).findings, "leftovers", "head");
  EXPECT_EQ(stale.level, Level::kWarn);
  EXPECT_EQ(stale.safe_fix.front(), "rm");
  pair.head_system.set_file("/proc/4711/stat", "4711 (tandem) S");
  EXPECT_EQ(find(diagnose(pair).findings, "leftovers", "head").level, Level::kNote);
  pair.head_system.set_file("/var/lib/tandem/lock", "4711 otherboot");
  EXPECT_THAT(find(diagnose(pair).findings, "leftovers", "head").seen, HasSubstr("earlier boot"));
  pair.worker_system.set_command("ps -eo pid,args",
                                 prints("PID COMMAND\n 77 /usr/bin/tandem serve --tp 2"));
  EXPECT_THAT(find(diagnose(pair).findings, "leftovers", "worker").fix, HasSubstr("kill 77"));
  EXPECT_EQ(big_cores(pair.head_system), "5-9,15-19");
  pair.config.head.cpus = "0-3";
  EXPECT_EQ(find(diagnose(pair).findings, "cpu", "head").level, Level::kWarn);
  EXPECT_EQ(clock_finding(40, 5).level, Level::kPass);
  EXPECT_EQ(clock_finding(-5'000, 5).level, Level::kWarn);
  EXPECT_EQ(clock_finding(90'000, 5).level, Level::kFail);
}

}  // namespace
}  // namespace tandem::cluster
