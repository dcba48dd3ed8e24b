#include "serving/protocol/messages_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_events.h"
#include "tests/unit/protocol/scripted_reply.h"

namespace tandem::protocol {
namespace {

using tandem::testing::Cut;
using tandem::testing::dsml_block;
using tandem::testing::dsml_call;
using tandem::testing::dsml_string;
using tandem::testing::many_cuts;
using tandem::testing::MessageEvents;
using tandem::testing::read_message_events;
using tandem::testing::Script;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Session {
  IdSource ids{1, 2};
  MessagesReply reply{"claude-x", "req_1", ids};
};

Script thinking(std::string text) {
  Script script;
  script.text = std::move(text);
  script.options.starts_in_reasoning = true;
  script.options.tool_names = {"read", "ls"};
  return script;
}

// Every cut gives the same message, which is that of the whole form.
MessageEvents run_all_cuts(const Script& script) {
  Session first;
  const MessageEvents events =
      read_message_events(tandem::testing::stream(first.reply, script, {1}));
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(json::Value(events.message), first.reply.body());
  for (const Cut& cut : many_cuts()) {
    Session session;
    const MessageEvents other =
        read_message_events(tandem::testing::stream(session.reply, script, cut));
    EXPECT_THAT(other.problems, IsEmpty());
    EXPECT_EQ(json::Value(other.message), json::Value(events.message));
  }
  return events;
}

std::string stop_reason(const MessageEvents& events) {
  return std::string(events.message.at("stop_reason").get_string());
}

TEST(MessagesReply, ThinkingTextAndCallsInOrder) {
  const MessageEvents events = run_all_cuts(
      thinking("hm</think>Look:" +
               dsml_block(dsml_call("read", dsml_string("p", "a \"b\"\n")) + dsml_call("ls", ""))));
  EXPECT_THAT(events.types,
              ElementsAre("message_start", "content_block_start", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_delta",
                          "content_block_stop", "content_block_start", "content_block_delta",
                          "content_block_stop", "message_delta", "message_stop"));
  const json::Array& content = events.message.at("content").get_array();
  ASSERT_EQ(content.size(), 4U);
  EXPECT_EQ(*json::find(content[0], "thinking"), json::Value("hm"));
  EXPECT_FALSE(json::find(content[0], "signature")->get_string().empty());
  EXPECT_EQ(*json::find(content[1], "text"), json::Value("Look:"));
  EXPECT_EQ(json::dump(*json::find(content[2], "input")), R"({"p":"a \"b\"\n"})");
  EXPECT_EQ(json::dump(*json::find(content[3], "input")), "{}");
  EXPECT_EQ(stop_reason(events), "tool_use");
}

// A32: no empty text block before a call.
TEST(MessagesReply, ABareCallIsOneBlock) {
  Script script = thinking(dsml_block(dsml_call("ls", "")));
  script.options.starts_in_reasoning = false;
  const MessageEvents events = run_all_cuts(script);
  EXPECT_EQ(events.message.at("content").get_array().size(), 1U);
  EXPECT_EQ(stop_reason(events), "tool_use");
}

TEST(MessagesReply, StopReasons) {
  EXPECT_EQ(stop_reason(run_all_cuts(thinking("t</think>a"))), "end_turn");
  Script stopped = thinking("t</think>one END two");
  stopped.options.stop = {"END"};
  const MessageEvents events = run_all_cuts(stopped);
  EXPECT_EQ(stop_reason(events), "stop_sequence");
  EXPECT_EQ(events.message.at("stop_sequence"), json::Value("END"));
  Script cut = thinking("t</think>a");
  cut.reason = runtime::FinishReason::kLength;
  EXPECT_EQ(stop_reason(run_all_cuts(cut)), "max_tokens");
}

// B-05: a cut call is in the stream but not in the message; complete ones stay.
TEST(MessagesReply, ACutCallIsLeftOut) {
  const std::string block =
      dsml_block(dsml_call("ls", "") + dsml_call("read", dsml_string("p", "hello")));
  for (const auto reason : {runtime::FinishReason::kLength, runtime::FinishReason::kStop}) {
    Script script = thinking("t</think>" + block.substr(0, block.find("hello") + 3));
    script.reason = reason;
    const MessageEvents events = run_all_cuts(script);
    EXPECT_EQ(stop_reason(events), "max_tokens");
    EXPECT_EQ(events.message.at("content").get_array().size(), 2U);
    EXPECT_THAT(json::dump(events.message), Not(HasSubstr("DSML")));
  }
}

TEST(MessagesReply, UsageTellsCachedTokens) {
  Session session;
  const std::string frames = tandem::testing::stream(session.reply, thinking("t</think>a"), {1});
  EXPECT_THAT(frames, HasSubstr(R"("usage":{"input_tokens":10,"cache_creation_input_tokens":0,)"
                                R"("cache_read_input_tokens":0,"output_tokens":1})"));
  EXPECT_EQ(json::dump(read_message_events(frames).message.at("usage")),
            R"({"input_tokens":6,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":4,"output_tokens":7})");
}

TEST(MessagesReply, HeartbeatsArePingEvents) {
  Session session;
  std::string frames = session.reply.begin(3);
  frames += session.reply.heartbeat();
  frames += session.reply.end_choice({});
  frames += session.reply.finish();
  const MessageEvents events = read_message_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.pings, 2);
}

TEST(MessagesReply, ErrorsInTheStreamAndBeforeIt) {
  Session session;
  std::string frames = session.reply.begin(3);
  frames += session.reply.fail(to_api_error(unavailable("rank 1 is gone")));
  const MessageEvents events = read_message_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(json::dump(events.error), R"({"type":"overloaded_error","message":"rank 1 is gone"})");
  ApiError too_long = bad_field("messages", "9 tokens, but the context has 8");
  too_long.code = "context_length_exceeded";
  EXPECT_EQ(json::dump(session.reply.error_body(too_long)),
            R"({"type":"error","error":{"type":"invalid_request_error","message":)"
            R"("prompt is too long: 9 tokens, but the context has 8"},"request_id":"req_1"})");
  EXPECT_THAT(json::dump(session.reply.error_body(to_api_error(unauthenticated("x")))),
              HasSubstr("authentication_error"));
  EXPECT_THAT(json::dump(session.reply.error_body(to_api_error(resource_exhausted("x")))),
              HasSubstr("rate_limit_error"));
  EXPECT_THAT(json::dump(session.reply.error_body(to_api_error(internal_error("x")))),
              HasSubstr("\"api_error\""));
}

TEST(MessagesReply, TheCheckerNoticesEveryLostFrame) {
  Session session;
  const std::string frames = tandem::testing::stream(session.reply, thinking("t</think>a"), {1});
  const json::Value whole = session.reply.body();
  for (std::size_t at = 0; at < frames.size();) {
    const std::size_t end = frames.find("\n\n", at) + 2;
    const std::string lost = frames.substr(at, end - at);
    const MessageEvents without = read_message_events(frames.substr(0, at) + frames.substr(end));
    const bool noticed = !without.problems.empty() || json::Value(without.message) != whole;
    EXPECT_EQ(noticed, lost.find("event: ping") == std::string::npos) << lost;
    at = end;
  }
}

}  // namespace
}  // namespace tandem::protocol
