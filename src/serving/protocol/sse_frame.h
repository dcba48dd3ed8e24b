// Frames of a server-sent event stream: LF line ends, one JSON object per frame, no id lines.
// SOURCE: api.md 3.1.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "foundation/json/json.h"

namespace tandem::protocol {

// "event: NAME\ndata: {...}\n\n"; without a name only the data line.
std::string sse_frame(std::string_view event, const json::Value& data);

// Calls `visit` with the data of every frame of a text that sse_frame made.
void each_sse_data(std::string_view frames, const std::function<void(std::string_view)>& visit);

}  // namespace tandem::protocol
