#include "operations/cluster/link_probe.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "operations/cluster/process.h"

namespace tandem::cluster {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kStreams = 4;
constexpr int kPings = 200;
constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kSendTime{400};
constexpr int kConnectMs = 8'000;
constexpr int kIdleMs = 5'000;

// A socket that closes itself.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in ipv4(const std::string& address, std::int64_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

Socket tcp_socket() {
  Socket socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(socket_fd.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  setsockopt(socket_fd.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const timeval limit{kIdleMs / 1000, 0};
  setsockopt(socket_fd.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket_fd.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  return socket_fd;
}

bool bind_to(const Socket& socket_fd, const std::string& address, std::int64_t port) {
  const sockaddr_in local = ipv4(address, port);
  return bind(socket_fd.fd(), reinterpret_cast<const sockaddr*>(&local), sizeof(local)) == 0;
}

// The first byte says what a connection is for: 'p' pings, 's' a stream of bytes.
void answer(const Socket& peer) {
  std::array<char, 64> first{};
  if (recv(peer.fd(), first.data(), 1, MSG_WAITALL) != 1) {
    return;
  }
  if (first[0] == 'p') {
    while (recv(peer.fd(), first.data(), first.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(first.size())) {
      send(peer.fd(), first.data(), first.size(), MSG_NOSIGNAL);
    }
    return;
  }
  std::vector<char> block(kBlock);
  std::uint64_t total = 0;
  ssize_t n = 0;
  while ((n = recv(peer.fd(), block.data(), block.size(), 0)) > 0) {
    total += static_cast<std::uint64_t>(n);
  }
  send(peer.fd(), &total, sizeof(total), MSG_NOSIGNAL);
}

Result<Socket> dial(const ClusterConfig& config, char purpose) {
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(kConnectMs);
  const sockaddr_in remote = ipv4(config.worker.address, config.probe_port);
  std::string last = "no answer";
  while (SteadyClock::now() < deadline) {
    Socket socket_fd = tcp_socket();
    if (!bind_to(socket_fd, config.head.address, 0)) {
      return unavailable("cannot use {} on the head: {}", config.head.address,
                         std::strerror(errno));
    }
    if (connect(socket_fd.fd(), reinterpret_cast<const sockaddr*>(&remote), sizeof(remote)) == 0) {
      send(socket_fd.fd(), &purpose, 1, MSG_NOSIGNAL);
      return socket_fd;
    }
    last = std::strerror(errno);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return unavailable("{} -> {}:{}: {}", config.head.address, config.worker.address,
                     config.probe_port, last);
}

Result<double> median_round_trip_us(const ClusterConfig& config) {
  TANDEM_ASSIGN(const Socket peer, dial(config, 'p'));
  std::array<char, 64> message{};
  std::vector<double> times;
  for (int i = 0; i < kPings; ++i) {
    const auto start = SteadyClock::now();
    send(peer.fd(), message.data(), message.size(), MSG_NOSIGNAL);
    if (recv(peer.fd(), message.data(), message.size(), MSG_WAITALL) !=
        static_cast<ssize_t>(message.size())) {
      return unavailable("{} stopped answering after {} messages", config.worker.address, i);
    }
    times.push_back(std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kPings / 2, times.end());
  return times[kPings / 2];
}

// Sends for a fixed time; the receiver's count is what arrived.
std::uint64_t send_stream(const Socket& peer) {
  const std::vector<char> block(kBlock);
  const auto end = SteadyClock::now() + kSendTime;
  while (SteadyClock::now() < end &&
         send(peer.fd(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
  }
  shutdown(peer.fd(), SHUT_WR);
  std::uint64_t total = 0;
  recv(peer.fd(), &total, sizeof(total), MSG_WAITALL);
  return total;
}

Result<double> throughput(const ClusterConfig& config) {
  std::vector<Socket> peers;
  for (int i = 0; i < kStreams; ++i) {
    TANDEM_ASSIGN(Socket peer, dial(config, 's'));
    peers.push_back(std::move(peer));
  }
  std::array<std::uint64_t, kStreams> totals{};
  std::vector<std::thread> threads;
  const auto start = SteadyClock::now();
  for (std::size_t i = 0; i < peers.size(); ++i) {
    threads.emplace_back([&totals, &peers, i] { totals[i] = send_stream(peers[i]); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  std::uint64_t total = 0;
  for (const std::uint64_t part : totals) {
    total += part;
  }
  return static_cast<double>(total) * 1e-9 / seconds;
}

}  // namespace

Result<LinkMeasure> measure_link(const ClusterConfig& config) {
  const std::vector<std::string> remote{config.binary, "agent",
                                        "--probe",     config.worker.address,
                                        "--port",      std::to_string(config.probe_port)};
  TANDEM_ASSIGN(const Child child,
                spawn_process(ssh_command(worker_target(config, ""), remote), {}));
  LinkMeasure out;
  Status status;
  const auto latency = median_round_trip_us(config);
  if (latency.ok()) {
    out.round_trip_us = *latency;
    const auto rate = throughput(config);
    status = rate.status();
    out.gigabytes_per_s = rate.ok() ? *rate : 0;
  } else {
    status = latency.status();
  }
  stop_group(child.pid, 0);
  if (!status.ok()) {
    return status;
  }
  return out;
}

Status serve_link_probe(const std::string& address, std::int64_t port) {
  const Socket listener = tcp_socket();
  if (!bind_to(listener, address, port) || listen(listener.fd(), kStreams + 1) != 0) {
    return unavailable("{}:{}: {}", address, port, std::strerror(errno));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kStreams + 1; ++i) {
    pollfd waiting{listener.fd(), POLLIN, 0};
    if (poll(&waiting, 1, kConnectMs) <= 0) {
      break;
    }
    threads.emplace_back([fd = accept(listener.fd(), nullptr, nullptr)] {
      const Socket peer(fd);
      const timeval limit{kIdleMs / 1000, 0};
      setsockopt(peer.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
      const int one = 1;
      setsockopt(peer.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
      answer(peer);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return ok_status();
}

}  // namespace tandem::cluster
