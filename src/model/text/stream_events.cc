#include "model/text/stream_events.h"

#include <algorithm>
#include <utility>

namespace tandem::text {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool starts_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

}  // namespace

StreamEvents::StreamEvents(std::vector<std::string> stop, bool include_stop)
    : stop_(std::move(stop)), include_stop_(include_stop) {
  stop_.erase(std::remove(stop_.begin(), stop_.end(), std::string()), stop_.end());
}

void StreamEvents::delta(StreamEvent::Kind kind, int index, std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (events_.empty() || events_.back().kind != kind || events_.back().index != index) {
    StreamEvent event;
    event.kind = kind;
    event.index = index;
    events_.push_back(std::move(event));
  }
  events_.back().text += text;
}

bool StreamEvents::could_become_stop(std::string_view text) const {
  return std::any_of(stop_.begin(), stop_.end(),
                     [text](const std::string& stop) { return starts_with(stop, text); });
}

void StreamEvents::content(char c) {
  if (stopped_) {
    return;
  }
  waiting_ += c;
  const std::string* found = nullptr;
  for (const std::string& stop : stop_) {
    if (ends_with(waiting_, stop) && (found == nullptr || stop.size() > found->size())) {
      found = &stop;
    }
  }
  if (found != nullptr) {
    stop_at(*found);
    return;
  }
  std::size_t certain = 0;
  while (certain < waiting_.size() &&
         !could_become_stop(std::string_view(waiting_).substr(certain))) {
    ++certain;
  }
  delta(StreamEvent::Kind::kContent, 0, std::string_view(waiting_).substr(0, certain));
  waiting_.erase(0, certain);
}

void StreamEvents::stop_at(const std::string& found) {
  const std::size_t kept = include_stop_ ? waiting_.size() : waiting_.size() - found.size();
  delta(StreamEvent::Kind::kContent, 0, std::string_view(waiting_).substr(0, kept));
  waiting_.clear();
  stopped_ = true;
  StreamEvent event;
  event.kind = StreamEvent::Kind::kStop;
  event.text = found;
  events_.push_back(std::move(event));
}

void StreamEvents::flush_content() {
  delta(StreamEvent::Kind::kContent, 0, waiting_);
  waiting_.clear();
}

std::vector<StreamEvent> StreamEvents::take() {
  return std::exchange(events_, {});
}

}  // namespace tandem::text
