#include "foundation/net/sse_parser.h"

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

const char kStream[] =
    ": ping\r\nevent: a\r\ndata: one\r\n\r\ndata:two\ndata: three\n\nid: 7\rdata\r\rdata: "
    "[DONE]\n\n"
    "event: lost\n\n";

std::string flatten(const std::vector<SseEvent>& events) {
  std::string out;
  for (const SseEvent& event : events) {
    out += event.event + "|" + event.data + "|" + event.id + ";";
  }
  return out;
}

TEST(SseParser, GivesTheSameEventsForEveryCut) {
  const std::string text = kStream;
  const std::string expected = "a|one|;|two\nthree|;||7;|[DONE]|;";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    SseParser parser;
    std::vector<SseEvent> events = parser.feed(text.substr(0, cut));
    for (const SseEvent& event : parser.feed(text.substr(cut))) {
      events.push_back(event);
    }
    EXPECT_EQ(flatten(events), expected) << "cut at " << cut;
    EXPECT_EQ(parser.comments(), 1);
    EXPECT_FALSE(parser.has_partial());
  }
}

TEST(SseParser, TellsThatAStreamEndedInTheMiddle) {
  SseParser parser;
  EXPECT_TRUE(parser.feed("data: half").empty());
  EXPECT_TRUE(parser.has_partial());
}

}  // namespace
}  // namespace tandem::net
