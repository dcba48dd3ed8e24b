// RoCE addressing: which ports a selector in NCCL's grammar names, and which GID index of each
// carries the fabric's IPv4 address as RoCE v2. Read from sysfs at every start, because the index
// differs per node and moves after a reboot or an interface event.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"
#include "operations/cluster/host_system.h"

namespace tandem::cluster {

// One name[:port] of a selector.
struct HcaName {
  std::string name;
  std::int64_t port = -1;  // -1 = any
};

// SOURCE: recipe.md 2.8 step 1: [^][=]name[:port[:rail[:plane]]],...; empty = every port.
struct HcaSelector {
  bool exclude = false;
  bool exact = false;
  std::vector<HcaName> names;

  bool selects(std::string_view device, std::int64_t port) const;
};

HcaSelector parse_hca_selector(std::string_view text);

// One usable GID of a port: RoCE v2 over IPv4.
struct Gid {
  int index = 0;
  std::string ipv4;
  std::string netdev;
};

struct RocePort {
  std::string device;
  std::int64_t port = 1;
  std::string state;       // "ACTIVE", "DOWN", "" = unreadable
  std::string link_layer;  // "Ethernet", "InfiniBand", "" = unreadable
  std::string rate;        // "200 Gb/sec (4X HDR)"
  std::vector<Gid> gids;   // those of type RoCE v2 that carry an IPv4 address
  std::vector<std::string> netdevs;

  bool candidate() const;
  std::string label() const { return fmt::format("{}:{}", device, port); }
};

// Every port in /sys/class/infiniband, in order of name.
std::vector<RocePort> read_roce_ports(HostSystem& system);

// The IPv4 addresses of an interface, from `ip -4 -o addr show dev NAME`.
std::vector<std::string> interface_ipv4(HostSystem& system, const std::string& interface);

struct GidChoice {
  int index = -1;  // one index for every selected port
  std::vector<RocePort> ports;
  std::vector<std::string> audit;  // one line per port: its usable indexes, or why it was skipped
};

// SOURCE: recipe.md 2.8 steps 2-6.
// ERRORS: kNotFound (no selected port is usable, or one has no index: the message names them);
// kFailedPrecondition (no index is common to all: each port's set is listed).
Result<GidChoice> resolve_gid(HostSystem& system, const HcaSelector& selector,
                              const std::string& match_ipv4);

}  // namespace tandem::cluster
