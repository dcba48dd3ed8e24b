#include "operations/cluster/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace tandem::cluster {

bool notify_systemd(const std::string& socket_path, const std::string& state) {
  if (socket_path.empty()) {
    return true;
  }
  sockaddr_un address{};
  if (socket_path.size() >= sizeof address.sun_path) {
    return false;
  }
  address.sun_family = AF_UNIX;
  std::copy(socket_path.begin(), socket_path.end(), address.sun_path);
  if (address.sun_path[0] == '@') {
    address.sun_path[0] = '\0';
  }
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return false;
  }
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path.size());
  const ssize_t sent = sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
  return sent == static_cast<ssize_t>(state.size());
}

}  // namespace tandem::cluster
