// Exchange: one request and the way to answer it. Thread-safe: a handler may keep it and answer
// later from any thread. Either respond() once, or begin_stream(), write()*, end_stream().
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serving/http/message.h"
#include "serving/http/websocket.h"

namespace tandem::http {

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  // The whole answer.
  virtual void respond(Response response) = 0;

  // The head of a streamed answer (server-sent events), then its pieces. Pieces that arrive after
  // the client has gone are dropped.
  virtual void begin_stream(Headers headers) = 0;
  virtual void write(std::string piece) = 0;

  // The last call of a stream. `keep_alive` false: the connection is closed, which tells the client
  // of a stream that broke off.
  virtual void end_stream(bool keep_alive = true) = 0;

  // Makes the connection a WebSocket instead of an answer. REQUIRES: request().wants_websocket,
  // called from within the handler.
  virtual void accept_websocket(WebSocketOpen open) = 0;

  // Called once, on a server thread, if the client goes before the answer is complete; at once if
  // it has gone. Set at most once.
  virtual void on_disconnect(std::function<void()> callback) = 0;

  // Runs a function where all callbacks of this exchange run: one at a time, in order.
  virtual void post(std::function<void()> function) = 0;
};

using ExchangePtr = std::shared_ptr<Exchange>;

// Called on a server thread for every request; must not block.
using Handler = std::function<void(ExchangePtr)>;

}  // namespace tandem::http
