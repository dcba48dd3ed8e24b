// Reads a Messages stream back and checks its rules (api.md 3.10): order, indices, block types,
// usage, and that the parts add up to the message that the whole form gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::testing {

struct MessageEvents {
  std::vector<std::string> types;     // pings left out, runs of one type as one
  std::vector<std::string> problems;  // empty: the stream is right
  json::Object message;               // put together as clients do; calls that were cut left out
  int pings = 0;
  json::Value error;  // of an error event
};

MessageEvents read_message_events(std::string_view frames);

}  // namespace tandem::testing
