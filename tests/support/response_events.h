// Reads a Responses stream back and checks every rule that a client could stumble over
// (api.md 3.2): numbering, names, order, ids, and that the parts add up to the final object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"

namespace tandem::testing {

struct ResponseEvents {
  std::vector<json::Value> events;
  std::vector<std::string> problems;  // empty: the stream is right
  json::Object response;              // of the terminal event

  // Types in order, with runs of one type as one.
  std::vector<std::string> types() const;
};

// `frames`: the whole body of an event stream.
ResponseEvents read_response_events(std::string_view frames);

}  // namespace tandem::testing
