// SseParser: server-sent events as a client sees them, from pieces of any size.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::net {

struct SseEvent {
  std::string event;  // "" if the stream named none
  std::string data;   // data lines joined with \n
  std::string id;
};

// SOURCE: WHATWG HTML, section 9.2.6 "Interpreting an event stream".
class SseParser {
 public:
  // Takes the next piece and returns the events that it completes.
  std::vector<SseEvent> feed(std::string_view piece);

  // Number of comment lines (": ...") seen: heartbeats.
  int comments() const { return comments_; }

  // True if bytes of an unfinished event are held: the stream ended in the middle.
  bool has_partial() const { return !line_.empty() || has_data_; }

 private:
  void take_line(std::string_view line, std::vector<SseEvent>& out);

  std::string line_;
  SseEvent current_;
  bool has_data_ = false;
  bool skip_newline_ = false;
  int comments_ = 0;
};

}  // namespace tandem::net
