// What systemd wants to hear from a Type=notify unit: one datagram on the socket that NOTIFY_SOCKET
// names. SOURCE: sd_notify(3).
#pragma once

#include <string>

namespace tandem::cluster {

// Sends `state` ("READY=1") to the socket; a leading @ names an abstract one. Without a socket
// nothing happens. False if there is a socket and the datagram did not go.
bool notify_systemd(const std::string& socket_path, const std::string& state);

}  // namespace tandem::cluster
