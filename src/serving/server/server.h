// Server: the HTTP face of one engine. Routes requests, checks keys, turns tasks into sequences and
// sequences into replies. Owns no model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/runtime/engine.h"
#include "foundation/base/status.h"
#include "model/text/tokenizer.h"
#include "serving/protocol/model_info.h"

namespace tandem::server {

struct ServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any free port
  int threads = 2;
  std::string state_dir;      // stored responses; empty: kept in memory until the end
  std::string api_keys_file;  // empty: no keys
  std::string tls_certificate;
  std::string tls_key;
  bool allow_public_without_key = false;
  std::int64_t max_connections = 4096;
  std::int64_t heartbeat_us = 10'000'000;  // a waiting stream hears from us this often
};

class Server {
 public:
  // All references outlive the server.
  Server(ServerConfig config, runtime::Engine& engine, const text::Tokenizer& tokenizer,
         protocol::ModelInfo model);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens; requests are served from now on.
  // ERRORS: kPermissionDenied (a public address without keys), kAlreadyExists (the port is taken),
  // kInvalidArgument (certificate, keys file, state folder).
  Status start();

  // The bound port. REQUIRES: started.
  std::uint16_t port() const;

  // Refuses new requests, ends running ones with an error that says so, closes everything.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tandem::server
