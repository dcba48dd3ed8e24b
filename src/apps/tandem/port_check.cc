#include "apps/tandem/port_check.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "foundation/net/http_client.h"

namespace tandem::apps {
namespace {

constexpr std::int64_t kProbeMs = 1'000;

// 0 or the errno of bind().
int try_bind(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
  }
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const int error = bind(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

bool tandem_answers(const std::string& host, std::int64_t port) {
  net::Url url;
  const bool any = host == "0.0.0.0" || host == "::";
  url.host = any ? "127.0.0.1" : host;
  url.port = std::to_string(port);
  net::HttpRequest request;
  request.target = "/health";
  request.connect_timeout_ms = kProbeMs;
  request.idle_timeout_ms = kProbeMs;
  const auto response = net::http_fetch(url, request);
  return response.ok() && response->header("server").rfind("tandem", 0) == 0;
}

}  // namespace

PortCheck check_port(const std::string& host, std::int64_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return {PortState::kBadAddress,
            fmt::format("host = '{}' is no address of this machine: {}", host, gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const int error = try_bind(*found);
  if (error == 0) {
    return {};
  }
  if (error != EADDRINUSE) {
    return {PortState::kBadAddress,
            fmt::format("cannot listen on {}:{}: {}", host, port, std::strerror(error))};
  }
  if (tandem_answers(host, port)) {
    return {PortState::kTandem,
            fmt::format("a Tandem server is already running on {}:{}; stop it first, or choose "
                        "another --port",
                        host, port)};
  }
  return {PortState::kTaken,
          fmt::format("port {} on {} is taken by another program (see: ss -ltnp 'sport = :{}'); "
                      "stop it, or choose another --port",
                      port, host, port)};
}

}  // namespace tandem::apps
