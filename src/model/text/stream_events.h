// Collects the events of one feed: neighbouring deltas of one kind become one event, and content
// passes the stop strings first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/text/stream_decoder.h"

namespace tandem::text {

class StreamEvents {
 public:
  StreamEvents(std::vector<std::string> stop, bool include_stop);

  void reasoning(std::string_view text) { delta(StreamEvent::Kind::kReasoning, 0, text); }

  void arguments(int index, std::string_view text) {
    delta(StreamEvent::Kind::kToolCallArguments, index, text);
  }

  // Content waits while its end could be the beginning of a stop string.
  void content(char c);

  // No stop string can go on: what waited is content.
  void flush_content();

  void event(StreamEvent event) { events_.push_back(std::move(event)); }

  // The events since the last call.
  std::vector<StreamEvent> take();

  bool stopped() const { return stopped_; }

 private:
  void delta(StreamEvent::Kind kind, int index, std::string_view text);
  void stop_at(const std::string& found);
  bool could_become_stop(std::string_view text) const;

  std::vector<std::string> stop_;
  bool include_stop_;
  std::string waiting_;
  bool stopped_ = false;
  std::vector<StreamEvent> events_;
};

}  // namespace tandem::text
