// A Server over a scripted engine on a free port, and a client for it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "foundation/json/json.h"
#include "foundation/net/http_client.h"
#include "serving/server/server.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/wire_tokens.h"

namespace tandem::testing {

class WireServer {
 public:
  // Answers the text of `say` to every request, whole prompts given as text. `change` may alter the
  // rest of the script.
  using Say = std::function<std::string(const std::string& prompt)>;
  using Change = std::function<void(EngineScript&)>;
  explicit WireServer(Say say, Change change = {}, server::ServerConfig config = {});
  ~WireServer();

  net::HttpResponse fetch(const std::string& method, const std::string& target,
                          const std::string& body = {}) const;
  net::HttpResponse post(const std::string& target, const std::string& body) const {
    return fetch("POST", target, body);
  }
  // The body as JSON; fails the test if the status is not 200.
  json::Value post_json(const std::string& target, const std::string& body) const;

  // Ends the server; `start` begins a new one with the same configuration.
  void stop();
  void start();

  std::string prompt(std::size_t request) const;  // text of a prompt that the engine got
  ScriptedEngine& engine() { return *engine_; }
  std::uint16_t port() const { return server_->port(); }

 private:
  server::ServerConfig config_;
  std::unique_ptr<ScriptedEngine> engine_;
  std::unique_ptr<server::Server> server_;
};

// A folder that is gone with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tandem::testing
