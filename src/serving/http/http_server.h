// HttpServer: HTTP/1.1 over TCP or TLS with limits on everything a client can make large or slow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "foundation/base/status.h"
#include "serving/http/exchange.h"

namespace tandem::http {

struct HttpConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free port, see HttpServer::port()
  int threads = 2;
  std::string tls_certificate;  // PEM chain; empty: plain HTTP
  std::string tls_key;          // PEM
  std::uint32_t max_header_bytes = 64 * 1024;
  std::uint64_t max_body_bytes = 64ULL << 20;
  std::int64_t max_pending_bytes = 4 << 20;  // unread output of one client, then it is dropped
  std::int64_t max_connections = 4096;
  int header_timeout_s = 30;
  int body_timeout_s = 120;
  int write_timeout_s = 60;
  int idle_timeout_s = 120;  // between requests
};

class HttpServer {
 public:
  HttpServer(HttpConfig config, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Reads the certificate, listens, starts threads.
  // ERRORS: kAlreadyExists (the port is taken), kInvalidArgument (address, certificate).
  Status start();

  // The bound port. REQUIRES: started.
  std::uint16_t port() const;

  std::int64_t connections() const;

  // Takes no new connections; idle ones close now, the others after their answer.
  void drain();

  // drain(), then closes what is left and joins the threads. No callback runs afterwards.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tandem::http
