// WebSocket: a connection that carries text messages both ways. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tandem::http {

class WebSocket {
 public:
  virtual ~WebSocket() = default;

  // Sends one text message; dropped if the client has gone.
  virtual void send(std::string text) = 0;

  // Ends the connection after what was sent before.
  virtual void finish() = 0;

  // Runs a function where the handlers run: one at a time, in order.
  virtual void post(std::function<void()> function) = 0;
};

using WebSocketPtr = std::shared_ptr<WebSocket>;

struct WebSocketHandlers {
  std::function<void(std::string)> on_message;
  std::function<void()> on_close;  // once; no message follows
  std::function<void()> on_drain;  // the server stops: finish() when the work at hand is done
};

// Called once the connection is a WebSocket.
using WebSocketOpen = std::function<WebSocketHandlers(WebSocketPtr)>;

}  // namespace tandem::http
