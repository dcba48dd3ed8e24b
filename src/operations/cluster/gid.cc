#include "operations/cluster/gid.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

namespace tandem::cluster {
namespace {

constexpr const char* kRoot = "/sys/class/infiniband";
constexpr std::size_t kMaxNames = 32;
constexpr std::size_t kMaxPorts = 32;
constexpr std::size_t kMaxNameBytes = 63;
constexpr std::size_t kMaxDigits = 9;

// atoi, except that more than nine digits clamp: 2^64-1 must not wrap around to "any".
std::int64_t port_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) {
    ++at;
  }
  bool negative = false;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
    negative = text[at] == '-';
    ++at;
  }
  std::int64_t value = 0;
  std::size_t digits = 0;
  for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at) {
    if (++digits > kMaxDigits) {
      return std::numeric_limits<std::int32_t>::max();
    }
    value = value * 10 + (text[at] - '0');
  }
  // -1 stands for "any" inside; a port that somebody wrote can never mean that.
  return negative && value != 0 ? std::numeric_limits<std::int32_t>::min() : value;
}

HcaName parse_name(std::string_view item) {
  HcaName out;
  const std::size_t colon = item.find(':');
  out.name = std::string(item.substr(0, std::min(colon, item.size())).substr(0, kMaxNameBytes));
  if (colon != std::string_view::npos) {
    std::string_view port = item.substr(colon + 1);
    port = port.substr(0, std::min(port.find(':'), port.size()));
    if (!port.empty()) {
      out.port = port_number(port);
    }
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char low = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// "0000:...:ffff:c0a8:6401" -> "192.168.100.1"; "" for any other form.
std::string mapped_ipv4(std::string_view gid) {
  constexpr std::string_view kPrefix = "0000:0000:0000:0000:0000:ffff:";
  if (gid.size() != kPrefix.size() + 9 || gid[34] != ':') {
    return "";
  }
  for (std::size_t i = 0; i < kPrefix.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(gid[i])) != kPrefix[i]) {
      return "";
    }
  }
  std::string out;
  for (const std::size_t at :
       {std::size_t{30}, std::size_t{32}, std::size_t{35}, std::size_t{37}}) {
    const int high = hex_digit(gid[at]);
    const int low = hex_digit(gid[at + 1]);
    if (high < 0 || low < 0) {
      return "";
    }
    out += (out.empty() ? "" : ".") + std::to_string(high * 16 + low);
  }
  return out;
}

// "4: ACTIVE" -> "ACTIVE".
std::string state_word(std::string text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

void read_gids(HostSystem& system, const std::string& folder, RocePort& port) {
  const auto indexes = system.list_dir(folder + "/gids");
  if (!indexes.ok()) {
    return;
  }
  std::set<std::string> netdevs;
  for (const std::string& name : *indexes) {
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const std::string netdev = read_word(system, folder + "/gid_attrs/ndevs/" + name);
    if (!netdev.empty()) {
      netdevs.insert(netdev);
    }
    const std::string ipv4 = mapped_ipv4(read_word(system, folder + "/gids/" + name));
    if (ipv4.empty() || read_word(system, folder + "/gid_attrs/types/" + name) != "RoCE v2") {
      continue;
    }
    port.gids.push_back({std::stoi(name), ipv4, netdev});
  }
  std::sort(port.gids.begin(), port.gids.end(),
            [](const Gid& a, const Gid& b) { return a.index < b.index; });
  port.netdevs.assign(netdevs.begin(), netdevs.end());
}

std::string set_text(const std::set<int>& indexes) {
  std::vector<std::string> parts;
  for (const int index : indexes) {
    parts.push_back(std::to_string(index));
  }
  return "{" + joined(parts, ",") + "}";
}

struct Member {
  const RocePort* port = nullptr;
  std::set<int> usable;
  std::set<int> through_match;
};

// Step 4: the GID carries the match address, or any address of its own interface.
Member usable_of(HostSystem& system, const RocePort& port, const std::string& match) {
  Member member;
  member.port = &port;
  for (const Gid& gid : port.gids) {
    const std::vector<std::string> own =
        gid.netdev.empty() ? std::vector<std::string>{} : interface_ipv4(system, gid.netdev);
    if (gid.ipv4 == match) {
      member.through_match.insert(gid.index);
      member.usable.insert(gid.index);
    } else if (std::find(own.begin(), own.end(), gid.ipv4) != own.end()) {
      member.usable.insert(gid.index);
    }
  }
  return member;
}

std::set<int> common_of(const std::vector<Member>& members) {
  std::set<int> common = members.front().usable;
  for (const Member& member : members) {
    std::set<int> both;
    std::set_intersection(common.begin(), common.end(), member.usable.begin(), member.usable.end(),
                          std::inserter(both, both.end()));
    common = both;
  }
  return common;
}

int pick(const std::vector<Member>& members, const std::set<int>& common) {
  for (const int index : common) {
    for (const Member& member : members) {
      if (member.through_match.count(index) != 0) {
        return index;
      }
    }
  }
  return *common.begin();
}

}  // namespace

bool HcaSelector::selects(std::string_view device, std::int64_t port) const {
  if (names.empty()) {
    return true;
  }
  bool matched = false;
  for (const HcaName& item : names) {
    const bool same = exact ? device == item.name : device.substr(0, item.name.size()) == item.name;
    matched = matched || (same && (item.port == -1 || item.port == port));
  }
  return matched != exclude;
}

HcaSelector parse_hca_selector(std::string_view text) {
  HcaSelector out;
  if (!text.empty() && text.front() == '^') {
    out.exclude = true;
    text.remove_prefix(1);
  }
  if (!text.empty() && text.front() == '=') {
    out.exact = true;
    text.remove_prefix(1);
  }
  while (!text.empty() && out.names.size() < kMaxNames) {
    const std::size_t comma = std::min(text.find(','), text.size());
    HcaName name = parse_name(text.substr(0, comma));
    if (!name.name.empty()) {
      out.names.push_back(std::move(name));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

bool RocePort::candidate() const {
  const bool up = state.empty() || state == "ACTIVE";
  return up && (link_layer.empty() || link_layer == "Ethernet" || link_layer == "InfiniBand");
}

std::vector<RocePort> read_roce_ports(HostSystem& system) {
  std::vector<RocePort> ports;
  const auto devices = system.list_dir(kRoot);
  if (!devices.ok()) {
    return ports;
  }
  for (const std::string& device : *devices) {
    const std::string folder = fmt::format("{}/{}/ports", kRoot, device);
    const auto numbers = system.list_dir(folder);
    if (!numbers.ok()) {
      continue;
    }
    for (const std::string& number : *numbers) {
      RocePort port;
      port.device = device;
      port.port = port_number(number);
      const std::string at = folder + "/" + number;
      port.state = state_word(read_word(system, at + "/state"));
      port.link_layer = read_word(system, at + "/link_layer");
      port.rate = read_word(system, at + "/rate");
      read_gids(system, at, port);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

std::vector<std::string> interface_ipv4(HostSystem& system, const std::string& interface) {
  const CommandResult result =
      system.run({"ip", "-4", "-o", "addr", "show", "dev", interface}, 5'000);
  std::vector<std::string> out;
  const std::vector<std::string> words = words_of(result.ok() ? result.out : "");
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "inet") {
      out.push_back(words[i + 1].substr(0, words[i + 1].find('/')));
    }
  }
  return out;
}

Result<GidChoice> resolve_gid(HostSystem& system, const HcaSelector& selector,
                              const std::string& match_ipv4) {
  GidChoice choice;
  std::vector<std::string> skipped;
  for (RocePort& port : read_roce_ports(system)) {
    if (!selector.selects(port.device, port.port)) {
      continue;
    }
    if (!port.candidate()) {
      skipped.push_back(
          fmt::format("{} (state {}, link layer {})", port.label(), port.state, port.link_layer));
    } else if (choice.ports.size() < kMaxPorts) {
      choice.ports.push_back(std::move(port));
    }
  }
  if (choice.ports.empty()) {
    return not_found("no active RoCE port matches the selector{}{}",
                     skipped.empty() ? "; /sys/class/infiniband has no such device" : "; skipped: ",
                     joined(skipped, ", "));
  }
  std::vector<Member> members;
  std::vector<std::string> sets;
  for (const RocePort& port : choice.ports) {
    members.push_back(usable_of(system, port, match_ipv4));
    if (members.back().usable.empty()) {
      return not_found("no RoCE v2 GID for {} on {}", match_ipv4, port.label());
    }
    sets.push_back(fmt::format("{} {}", port.label(), set_text(members.back().usable)));
  }
  choice.audit = sets;
  for (const std::string& why : skipped) {
    choice.audit.push_back("skipped " + why);
  }
  const std::set<int> common = common_of(members);
  if (common.empty()) {
    return failed_precondition("no GID index is common to all selected ports: {}",
                               joined(sets, ", "));
  }
  choice.index = pick(members, common);
  return choice;
}

}  // namespace tandem::cluster
