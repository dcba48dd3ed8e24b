#include <algorithm>
#include <set>

#include "operations/cluster/checks.h"

namespace tandem::cluster {
namespace {

constexpr int kJumboMtu = 9000;
constexpr double kGoodShare = 0.5;  // of the port's rate, below which a link counts as trained low

std::int64_t leading_number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

void check_port(const NodeUnderTest& under, const RocePort& port, Findings& out) {
  const std::int64_t rate = leading_number(port.rate);
  const std::string device = "/sys/class/infiniband/" + port.device + "/device";
  const std::string width = read_word(*under.system, device + "/current_link_width");
  const std::string speed = read_word(*under.system, device + "/current_link_speed");
  const std::string seen = fmt::format("{} {} {}, PCIe x{} {}", port.label(), port.state, port.rate,
                                       width.empty() ? "?" : width, speed.empty() ? "?" : speed);
  if (rate > 0 && rate < 200) {
    out.push_back({"roce_rate", under.name, Level::kWarn, seen,
                   "the cable runs below 200 Gb/s, so every step waits for the network",
                   fmt::format("check cable and port: ethtool {}", under.node->interface)});
    return;
  }
  if (!width.empty() && leading_number(width) < 4) {
    out.push_back({"roce_pcie", under.name, Level::kWarn, seen,
                   "each half of the port needs four PCIe lanes",
                   "power the machine off and on; then lspci -vv"});
    return;
  }
  out.push_back({"roce_port", under.name, Level::kPass, seen, "", ""});
}

void check_twins(const NodeUnderTest& under, const std::vector<RocePort>& used,
                 const std::vector<RocePort>& active, Findings& out) {
  if (used.size() < active.size()) {
    out.push_back({"roce_rails", under.name, Level::kWarn,
                   fmt::format("{} of {} active ports are selected by '{}'", used.size(),
                               active.size(), under.node->hca),
                   "one cable appears as two PCIe functions; naming one uses half of it",
                   fmt::format("set hca = \"\" in [{}] of cluster.toml", under.name)});
    return;
  }
  std::map<std::string, std::string> subnets;
  for (const RocePort& port : used) {
    for (const Gid& gid : port.gids) {
      const std::string subnet = gid.ipv4.substr(0, gid.ipv4.rfind('.'));
      const auto known = subnets.emplace(subnet, port.label()).first;
      if (known->second != port.label()) {
        out.push_back({"roce_subnets", under.name, Level::kWarn,
                       fmt::format("{} and {} both have addresses in {}.0/24", known->second,
                                   port.label(), subnet),
                       "the kernel sends traffic for a shared subnet through one of the two",
                       "give the twins addresses in different subnets"});
        return;
      }
    }
  }
  out.push_back(
      {"roce_rails", under.name, Level::kPass, fmt::format("{} rails", used.size()), "", ""});
}

Finding gid_finding(const NodeUnderTest& under) {
  const NodeConfig& node = *under.node;
  const auto choice = resolve_gid(*under.system, parse_hca_selector(node.hca), node.address);
  Finding finding{"gid", under.name, Level::kFail, "", "", ""};
  if (!choice.ok()) {
    finding.seen = choice.status().message();
    finding.why = "without a RoCE v2 index for the fabric address the ranks cannot connect";
    finding.fix =
        fmt::format("put {} on the interface of the cabled port: ip addr add {}/24 dev {}",
                    node.address, node.address, node.interface);
    return finding;
  }
  if (node.gid_index >= 0 && node.gid_index != choice->index) {
    finding.seen = fmt::format("gid_index is pinned to {} but {} has it at {} now", node.gid_index,
                               node.address, choice->index);
    finding.why = "the index moves after a reboot or an interface event; a stale one fails";
    finding.fix = fmt::format("remove gid_index from [{}] of cluster.toml", under.name);
    return finding;
  }
  finding.level = Level::kPass;
  finding.seen = fmt::format("index {} ({})", choice->index, joined(choice->audit, "; "));
  return finding;
}

Finding mtu_finding(const NodeUnderTest& under, int mtu) {
  const std::string& interface = under.node->interface;
  Finding finding{"mtu", under.name, Level::kPass, fmt::format("{} MTU {}", interface, mtu),
                  "",    ""};
  if (mtu < kJumboMtu) {
    finding.level = Level::kWarn;
    finding.why =
        "small frames cost bandwidth; both ends must agree, and a firmware update resets it";
    finding.safe_fix = {"ip", "link", "set", interface, "mtu", std::to_string(kJumboMtu)};
    finding.fix = joined(finding.safe_fix, " ") + ", and in netplan to keep it";
  }
  return finding;
}

}  // namespace

void check_roce(const NodeUnderTest& under, Findings& out) {
  const std::vector<RocePort> ports = read_roce_ports(*under.system);
  if (ports.empty()) {
    const bool wanted = !under.node->hca.empty();
    out.push_back({"roce_port", under.name, wanted ? Level::kFail : Level::kNote,
                   "no RDMA device in /sys/class/infiniband",
                   wanted ? "cluster.toml names one: " + under.node->hca
                          : "the ranks talk TCP over the fabric address",
                   wanted ? "load the mlx5_ib driver, or set hca = \"\"" : ""});
    return;
  }
  const HcaSelector selector = parse_hca_selector(under.node->hca);
  std::vector<RocePort> used;
  std::vector<RocePort> active;
  for (const RocePort& port : ports) {
    if (port.candidate()) {
      active.push_back(port);
      if (selector.selects(port.device, port.port)) {
        used.push_back(port);
        check_port(under, port, out);
      }
    }
  }
  if (!used.empty()) {
    check_twins(under, used, active, out);
  }
  out.push_back(gid_finding(under));
}

void check_interface(const NodeUnderTest& under, Findings& out) {
  const NodeConfig& node = *under.node;
  const std::string base = "/sys/class/net/" + node.interface;
  const std::string mtu = read_word(*under.system, base + "/mtu");
  if (mtu.empty()) {
    out.push_back({"address", under.name, Level::kFail,
                   fmt::format("there is no interface {}", node.interface),
                   "cluster.toml names it as the fabric",
                   fmt::format("correct interface in [{}]; see `ip -br addr`", under.name)});
    return;
  }
  const std::string state = read_word(*under.system, base + "/operstate");
  const std::vector<std::string> addresses = interface_ipv4(*under.system, node.interface);
  const bool has = std::find(addresses.begin(), addresses.end(), node.address) != addresses.end();
  if (!has || state == "down") {
    out.push_back(
        {"address", under.name, Level::kFail,
         fmt::format("{} is {} with {}; expected {}", node.interface, state,
                     addresses.empty() ? "no IPv4 address" : joined(addresses, ", "), node.address),
         "everything between the ranks is bound to the fabric address",
         fmt::format("ip addr add {}/24 dev {} && ip link set {} up", node.address, node.interface,
                     node.interface)});
    return;
  }
  out.push_back({"address", under.name, Level::kPass,
                 fmt::format("{} on {}", node.address, node.interface), "", ""});
  out.push_back(mtu_finding(under, static_cast<int>(leading_number(mtu))));
}

void check_mtu_path(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  const auto mtu = [](const NodeUnderTest& under) {
    return leading_number(
        read_word(*under.system, "/sys/class/net/" + under.node->interface + "/mtu"));
  };
  const std::int64_t head_mtu = mtu(head);
  const std::int64_t worker_mtu = mtu(worker);
  if (head_mtu != worker_mtu) {
    out.push_back({"mtu_path", "pair", Level::kFail,
                   fmt::format("head {} has MTU {}, worker {} has MTU {}", head.node->interface,
                               head_mtu, worker.node->interface, worker_mtu),
                   "large frames from one side are lost without a word",
                   "set the same MTU (9000) on both"});
    return;
  }
  const CommandResult ping = head.system->run(
      {"ping", "-c", "2", "-i", "0.2", "-W", "1", "-M", "do", "-s",
       std::to_string(std::max<std::int64_t>(head_mtu - 28, 56)), worker.node->address},
      5'000);
  if (ping.exit_code == 127) {
    out.push_back({"mtu_path", "pair", Level::kNote, "ping is not installed", "",
                   "apt-get install iputils-ping"});
  } else if (!ping.ok()) {
    out.push_back({"mtu_path", "pair", Level::kFail,
                   fmt::format("{} does not answer a full-size ping ({} bytes, do not fragment)",
                               worker.node->address, head_mtu),
                   "the fabric is down, or a device between the machines has a smaller MTU",
                   "check the cable; then ping without -s, then compare MTUs"});
  } else {
    out.push_back({"mtu_path", "pair", Level::kPass,
                   fmt::format("full-size frames ({} bytes) pass", head_mtu), "", ""});
  }
}

void check_subnet(const NodeUnderTest& head, const NodeUnderTest& worker, Findings& out) {
  const std::string& a = head.node->address;
  const std::string& b = worker.node->address;
  if (a == b) {
    out.push_back({"subnet", "pair", Level::kFail, fmt::format("both machines have {}", a),
                   "the ranks would talk to themselves", "give the worker another address"});
    return;
  }
  const CommandResult route = head.system->run({"ip", "-4", "-o", "route", "get", b}, 5'000);
  const std::vector<std::string> words = words_of(route.out);
  const auto dev = std::find(words.begin(), words.end(), "dev");
  const std::string used = dev != words.end() && dev + 1 != words.end() ? *(dev + 1) : "";
  const bool via = std::find(words.begin(), words.end(), "via") != words.end();
  if (!route.ok() || used != head.node->interface || via) {
    out.push_back({"subnet", "pair", Level::kFail,
                   fmt::format("{} is reached through {}{}, not through {}", b,
                               used.empty() ? "nothing" : used, via ? " and a gateway" : "",
                               head.node->interface),
                   "the ranks would use the wrong network",
                   fmt::format("put both addresses into one subnet of {}", head.node->interface)});
    return;
  }
  out.push_back({"subnet", "pair", Level::kPass,
                 fmt::format("{} is reached directly through {}", b, used), "", ""});
}

Finding link_finding(double gigabytes_per_s, double round_trip_us, double port_gigabits) {
  Finding finding{"link",
                  "pair",
                  Level::kPass,
                  fmt::format("{:.2f} GB/s, {:.0f} us round trip (TCP, four streams)",
                              gigabytes_per_s, round_trip_us),
                  "",
                  ""};
  // A link that says 200 Gb/s may be trained at 13: 1.6 GB/s. TCP reaches a fraction of a good one.
  const bool low = port_gigabits > 0 && gigabytes_per_s * 8 < port_gigabits * kGoodShare * 0.2;
  if (low || round_trip_us > 2'000) {
    finding.level = Level::kWarn;
    finding.why = low ? fmt::format("the port says {:.0f} Gb/s", port_gigabits)
                      : "each token needs dozens of exchanges between the machines";
    finding.fix = "update the ConnectX firmware on both, power both off and on, reseat the cable";
  }
  return finding;
}

}  // namespace tandem::cluster
