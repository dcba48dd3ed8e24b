#include "operations/cluster/discover.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "operations/cluster/gid.h"

namespace tandem::cluster {
namespace {

struct AddressLine {
  std::string interface;
  std::string address;
  int prefix = 32;
};

// "2: eth0    inet 10.0.0.1/24 brd ... scope global eth0"
std::vector<AddressLine> addresses(HostSystem& system) {
  std::vector<AddressLine> out;
  for (const std::string& line :
       lines_of(system.run({"ip", "-4", "-o", "addr", "show"}, 5'000).out)) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 4 || words[2] != "inet" || words[1] == "lo") {
      continue;
    }
    const std::size_t slash = words[3].find('/');
    AddressLine entry{words[1], words[3].substr(0, slash), 32};
    if (slash != std::string::npos) {
      entry.prefix = std::atoi(words[3].c_str() + slash + 1);
    }
    out.push_back(std::move(entry));
  }
  return out;
}

std::uint32_t ipv4_number(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ? ntohl(address.s_addr) : 0;
}

std::vector<std::string> neighbours(HostSystem& system, const std::string& interface) {
  std::vector<std::string> out;
  for (const std::string& line :
       lines_of(system.run({"ip", "-4", "neigh", "show", "dev", interface}, 5'000).out)) {
    const std::vector<std::string> words = words_of(line);
    const bool known = std::find(words.begin(), words.end(), "lladdr") != words.end();
    if (known && words.back() != "FAILED") {
      out.push_back(words[0]);
    }
  }
  return out;
}

}  // namespace

std::vector<FabricInterface> find_fabric(HostSystem& system) {
  std::set<std::string> rdma;
  for (const RocePort& port : read_roce_ports(system)) {
    if (port.candidate()) {
      rdma.insert(port.netdevs.begin(), port.netdevs.end());
    }
  }
  std::vector<FabricInterface> out;
  for (const AddressLine& line : addresses(system)) {
    out.push_back({line.interface, line.address, rdma.count(line.interface) != 0,
                   neighbours(system, line.interface)});
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const FabricInterface& entry) { return entry.rdma; });
  return out;
}

LocalAddress address_beside(HostSystem& system, const std::string& address) {
  const std::uint32_t other = ipv4_number(address);
  for (const AddressLine& line : addresses(system)) {
    const std::uint32_t mask =
        line.prefix <= 0 ? 0 : ~std::uint32_t{0} << (32 - std::min(line.prefix, 32));
    if (line.prefix < 32 && (ipv4_number(line.address) & mask) == (other & mask)) {
      return {line.interface, line.address};
    }
  }
  return {};
}

}  // namespace tandem::cluster
