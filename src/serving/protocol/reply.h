// Reply: how one API speaks back. Pure: decoded events in, bytes of the wire format out. The server
// owns sockets and time; a Reply owns ids, order and shapes, so that every rule about streams is
// tested without a network. The streamed and the whole form come from the same object and agree.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/engine.h"
#include "foundation/json/json.h"
#include "model/text/stream_decoder.h"
#include "serving/protocol/api_error.h"

namespace tandem::protocol {

// News of one choice: what the decoder made of the tokens of one step.
struct ChoiceUpdate {
  int choice = 0;
  std::span<const text::StreamEvent> events;
  std::span<const runtime::TokenOutput> tokens;  // log-probabilities, if asked for
};

// How one choice ended. `stop` is the stop string that was met, if any.
struct ChoiceEnd {
  int choice = 0;
  runtime::FinishReason reason = runtime::FinishReason::kStop;
  std::optional<std::string> stop;
  runtime::Usage usage;
};

class Reply {
 public:
  virtual ~Reply() = default;

  // Streamed form: each call returns whole SSE frames (possibly none), in the order of the wire.
  // begin() once, then update() and end_choice() per choice, then exactly one of finish(), fail().
  // `prompt_tokens` is what Messages says in its first frame.
  virtual std::string begin(std::int64_t prompt_tokens) = 0;
  virtual std::string update(const ChoiceUpdate& update) = 0;
  virtual std::string end_choice(const ChoiceEnd& end) = 0;
  virtual std::string finish() = 0;
  virtual std::string fail(const ApiError& error) = 0;

  // What keeps the connection of a waiting client alive (api.md 0.2).
  virtual std::string heartbeat() = 0;

  // Whole form: the body after all choices have ended. The frames of the calls before are unused.
  virtual json::Value body() const = 0;

  // The body of an error in this API's shape.
  virtual json::Value error_body(const ApiError& error) const = 0;
};

}  // namespace tandem::protocol
