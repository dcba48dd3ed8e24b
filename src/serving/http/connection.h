// Connection: one client's socket. Reads a request, hands an Exchange to the handler, writes the
// answer, and again. While an answer is being made the socket is watched, so that a client that
// goes is noticed although nothing is written to it. Internal to serving/http.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "serving/http/exchange.h"
#include "serving/http/http_server.h"

namespace tandem::http {

class OpenConnection {
 public:
  virtual ~OpenConnection() = default;
  // Closes now if idle, else after the current answer.
  virtual void drain() = 0;
  // Closes now.
  virtual void close() = 0;
};

// All connections of a server, so that it can end them. Thread-safe.
class ConnectionSet {
 public:
  // False if there are `limit` already.
  bool add(const std::shared_ptr<OpenConnection>& connection, std::int64_t limit);
  void remove(OpenConnection* connection);
  std::int64_t size() const;
  // Calls `visit` for each one, outside of the lock.
  void for_each(const std::function<void(OpenConnection&)>& visit) const;

 private:
  mutable std::mutex mutex_;
  std::map<OpenConnection*, std::weak_ptr<OpenConnection>> open_;
};

// What all connections share; outlives them.
struct ConnectionContext {
  const HttpConfig& config;
  const Handler& handler;
  ConnectionSet& connections;
  boost::asio::ssl::context* tls = nullptr;  // nullptr: plain
};

// Takes the socket over and starts to read. The socket's executor is a strand.
void start_connection(boost::asio::ip::tcp::socket socket, const ConnectionContext& context);

}  // namespace tandem::http
