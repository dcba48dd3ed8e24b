// What setup finds by itself: the fabric interface, its address, and who answers on it.
#pragma once

#include <string>
#include <vector>

#include "operations/cluster/host_system.h"

namespace tandem::cluster {

struct FabricInterface {
  std::string name;
  std::string address;             // IPv4
  bool rdma = false;               // carries an active RoCE port
  std::vector<std::string> peers;  // addresses in the neighbour table
};

// RoCE interfaces first, then the others that have an IPv4 address; loopback is left out.
std::vector<FabricInterface> find_fabric(HostSystem& system);

// The address of this machine that lies in the same network as `address` ("10.0.0.1"), found in
// `ip -4 -o addr show`; "" if none does.
struct LocalAddress {
  std::string interface;
  std::string address;
};
LocalAddress address_beside(HostSystem& system, const std::string& address);

}  // namespace tandem::cluster
