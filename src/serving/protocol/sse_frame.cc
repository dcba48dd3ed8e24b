#include "serving/protocol/sse_frame.h"

namespace tandem::protocol {

std::string sse_frame(std::string_view event, const json::Value& data) {
  std::string out;
  if (!event.empty()) {
    out += "event: ";
    out += event;
    out += '\n';
  }
  out += "data: ";
  out += json::dump(data);
  out += "\n\n";
  return out;
}

void each_sse_data(std::string_view frames, const std::function<void(std::string_view)>& visit) {
  constexpr std::string_view kData = "data: ";
  std::size_t at = 0;
  while (at < frames.size()) {
    std::size_t end = frames.find('\n', at);
    end = end == std::string_view::npos ? frames.size() : end;
    const std::string_view line = frames.substr(at, end - at);
    if (line.substr(0, kData.size()) == kData) {
      visit(line.substr(kData.size()));
    }
    at = end + 1;
  }
}

}  // namespace tandem::protocol
