#include "foundation/net/sse_parser.h"

#include <utility>

namespace tandem::net {

void SseParser::take_line(std::string_view line, std::vector<SseEvent>& out) {
  if (line.empty()) {
    if (has_data_) {
      out.push_back(std::exchange(current_, {}));
    }
    current_.event.clear();
    has_data_ = false;
    return;
  }
  if (line.front() == ':') {
    ++comments_;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') {
    value.remove_prefix(1);
  }
  if (field == "event") {
    current_.event = std::string(value);
  } else if (field == "id") {
    current_.id = std::string(value);
  } else if (field == "data") {
    if (has_data_) {
      current_.data += '\n';
    }
    current_.data += value;
    has_data_ = true;
  }
}

std::vector<SseEvent> SseParser::feed(std::string_view piece) {
  std::vector<SseEvent> out;
  for (const char c : piece) {
    if (skip_newline_ && c == '\n') {
      skip_newline_ = false;
      continue;
    }
    skip_newline_ = c == '\r';
    if (c == '\n' || c == '\r') {
      take_line(line_, out);
      line_.clear();
    } else {
      line_ += c;
    }
  }
  return out;
}

}  // namespace tandem::net
