// Whether the port is free, asked before anything is loaded: a start that cannot succeed should
// fail in milliseconds, and say who has the port.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::apps {

enum class PortState { kFree, kTandem, kTaken, kBadAddress };

struct PortCheck {
  PortState state = PortState::kFree;
  std::string message;  // for kTaken, kTandem and kBadAddress
};

// `host` is the address to listen on. Port 0 is always free.
PortCheck check_port(const std::string& host, std::int64_t port);

}  // namespace tandem::apps
