#include "serving/protocol/responses_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/protocol/opaque_text.h"
#include "tests/support/openapi_schemas.h"
#include "tests/support/response_events.h"
#include "tests/unit/protocol/scripted_reply.h"

namespace tandem::protocol {
namespace {

using tandem::testing::Cut;
using tandem::testing::dsml_block;
using tandem::testing::dsml_call;
using tandem::testing::dsml_string;
using tandem::testing::many_cuts;
using tandem::testing::openresponses_problems;
using tandem::testing::read_response_events;
using tandem::testing::ResponseEvents;
using tandem::testing::Script;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NoLookup final : public ResponseLookup {
 public:
  Parsed<json::Array> history(const std::string&) const override { return json::Array(); }

  std::optional<json::Value> item(const std::string&) const override { return std::nullopt; }
};

constexpr std::string_view kRequest = R"({"model":"m","input":"hi","instructions":"be brief",
  "tools":[{"type":"function","name":"ls","parameters":{"type":"object"}},
           {"type":"custom","name":"apply_patch","description":"d"},
           {"type":"namespace","name":"mcp__git","tools":[{"type":"function","name":"log"}]},
           {"type":"web_search"}],
  "metadata":{"k":"v"},"include":["reasoning.encrypted_content"]})";

// A reply of its own ids and clock, so that two with the same script are the same.
struct Session {
  explicit Session(std::string_view request = kRequest)
      : parsed(*parse_responses_request(json::parse(request).value(), NoLookup(), ids)),
        reply(parsed.settings, "m", ids, clock, [this](const json::Object& final_response) {
          stored.push_back(final_response);
          return true;
        }) {}

  IdSource ids{1, 2};
  ManualClock clock;
  std::vector<json::Object> stored;
  ResponsesRequest parsed;
  ResponsesReply reply;
};

Script with_tools(std::string text) {
  Script script;
  script.text = std::move(text);
  script.options.starts_in_reasoning = true;
  script.options.tool_names = {"ls", "apply_patch", "mcp__git__log"};
  script.options.string_parameters = {{"apply_patch", "input"}};
  return script;
}

ResponseEvents run(const Script& script, const Cut& cut) {
  Session session;
  ResponseEvents events = read_response_events(tandem::testing::stream(session.reply, script, cut));
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(session.stored.size(), 1U);
  EXPECT_EQ(json::Value(session.stored.at(0)), json::Value(events.response));
  EXPECT_EQ(session.reply.body(), json::Value(events.response));
  return events;
}

// Every cut gives the same final object; the frames differ only in how deltas are cut.
json::Object run_all_cuts(const Script& script) {
  const json::Object first = run(script, {1}).response;
  const std::vector<std::string> types = run(script, {1}).types();
  for (const Cut& cut : many_cuts()) {
    const ResponseEvents other = run(script, cut);
    EXPECT_EQ(json::Value(other.response), json::Value(first));
    EXPECT_EQ(other.types(), types);
  }
  return first;
}

const json::Object& item(const json::Object& response, std::size_t index) {
  return response.at("output").get_array().at(index).get_object();
}

std::string text_of(const json::Object& object) {
  return std::string(object.at("content").get_array().at(0).get_object().at("text").get_string());
}

TEST(ResponsesReply, ThoughtAndAnswerInOrder) {
  const ResponseEvents events = run(with_tools("I think.</think>Hello \xE4\xB8\x96!"), {1});
  EXPECT_THAT(events.types(),
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.delta",
                          "response.reasoning_text.done", "response.content_part.done",
                          "response.output_item.done", "response.output_item.added",
                          "response.content_part.added", "response.output_text.delta",
                          "response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.completed"));
  const json::Object response = run_all_cuts(with_tools("I think.</think>Hello \xE4\xB8\x96!"));
  EXPECT_EQ(text_of(item(response, 0)), "I think.");
  EXPECT_EQ(text_of(item(response, 1)), "Hello \xE4\xB8\x96!");
  EXPECT_EQ(unwrap_opaque(item(response, 0).at("encrypted_content").get_string()), "I think.");
}

TEST(ResponsesReply, CallsOfAllThreeKindsWithoutMarkup) {
  const Script script =
      with_tools("plan</think>On it." +
                 dsml_block(dsml_call("ls", dsml_string("path", "a \"b\" 2>&1")) +
                            dsml_call("apply_patch",
                                      dsml_string("input", "*** Begin\n+\"x\"\t\xF0\x9F\x98\x80")) +
                            dsml_call("mcp__git__log", "")));
  const json::Object response = run_all_cuts(script);
  ASSERT_EQ(response.at("output").get_array().size(), 5U);
  EXPECT_EQ(text_of(item(response, 1)), "On it.");
  EXPECT_EQ(item(response, 2).at("type"), "function_call");
  EXPECT_EQ(item(response, 2).at("name"), "ls");
  EXPECT_EQ(json::parse(item(response, 2).at("arguments").get_string()).value(),
            json::parse(R"({"path":"a \"b\" 2>&1"})").value());
  EXPECT_EQ(item(response, 3).at("type"), "custom_tool_call");
  EXPECT_EQ(item(response, 3).at("input"), "*** Begin\n+\"x\"\t\xF0\x9F\x98\x80");
  EXPECT_EQ(item(response, 4).at("name"), "log");
  EXPECT_EQ(item(response, 4).at("namespace"), "mcp__git");
  EXPECT_EQ(item(response, 4).at("arguments"), "{}");
  EXPECT_THAT(json::dump(response), Not(HasSubstr("DSML")));
}

TEST(ResponsesReply, ACallWithoutThoughtHasNoMessageItem) {
  Script script = with_tools(dsml_block(dsml_call("ls", "")));
  script.options.starts_in_reasoning = false;
  const json::Object response = run_all_cuts(script);
  ASSERT_EQ(response.at("output").get_array().size(), 1U);
  EXPECT_EQ(item(response, 0).at("type"), "function_call");
  EXPECT_EQ(response.at("status"), "completed");
}

// A25: a limit is told everywhere, and the item that was being written is the last one.
TEST(ResponsesReply, ALimitMakesItemAndResponseIncomplete) {
  for (const std::string& text :
       {std::string("I th"), std::string("I think</think>Hel"),
        "x</think>" + dsml_block(dsml_call("ls", dsml_string("path", "/tmp"))).substr(0, 130)}) {
    Script script = with_tools(text);
    script.reason = runtime::FinishReason::kLength;
    const json::Object response = run_all_cuts(script);
    EXPECT_EQ(response.at("status"), "incomplete") << text;
    EXPECT_EQ(response.at("incomplete_details").get_object().at("reason"), "max_output_tokens");
    const std::size_t last = response.at("output").get_array().size() - 1;
    EXPECT_EQ(item(response, last).at("status"), "incomplete") << text;
    for (std::size_t i = 0; i < last; ++i) {
      EXPECT_EQ(item(response, i).at("status"), "completed") << text;
    }
  }
}

TEST(ResponsesReply, AModelThatStopsInsideACallDidNotComplete) {
  const std::string block = dsml_block(dsml_call("ls", dsml_string("path", "/tmp")));
  const json::Object response =
      run_all_cuts(with_tools("x</think>" + block.substr(0, block.find("/tmp") + 2)));
  EXPECT_EQ(response.at("status"), "incomplete");
  EXPECT_EQ(item(response, 1).at("status"), "incomplete");
}

TEST(ResponsesReply, HasAllMembersAndTheRightUsage) {
  constexpr std::string_view kPlain =
      R"({"model":"m","input":"hi","tools":[{"type":"function","name":"f"}],"temperature":0.5})";
  Session session(kPlain);
  Script script = with_tools("t</think>a");
  script.usage.thinking_tokens = 2;
  const json::Value body = tandem::testing::whole(session.reply, script);
  EXPECT_EQ(openresponses_problems("ResponseResource", body), "");
  EXPECT_EQ(json::dump(*json::find(body, "usage")),
            R"({"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":7,)"
            R"("output_tokens_details":{"reasoning_tokens":2},"total_tokens":17})");
  EXPECT_EQ(*json::find(body, "temperature"), json::Value(0.5));
}

TEST(ResponsesReply, EffortNoneLeavesNoTraceOfReasoning) {
  Session session(R"({"model":"m","input":"hi","reasoning":{"effort":"none"}})");
  Script script;
  script.text = "RESPONSES";
  const std::string frames = tandem::testing::stream(session.reply, script, {2});
  const ResponseEvents events = read_response_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_THAT(frames, Not(HasSubstr("reasoning_text")));
  EXPECT_THAT(frames, Not(HasSubstr("[DONE]")));
  EXPECT_EQ(events.response.at("output").get_array().size(), 1U);
}

TEST(ResponsesReply, HeartbeatsAreNumberedEvents) {
  Session session;
  std::string frames = session.reply.begin(10);
  frames += session.reply.heartbeat();
  frames += session.reply.heartbeat();
  frames += session.reply.end_choice({});
  frames += session.reply.finish();
  const ResponseEvents events = read_response_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.events.size(), 5U);
}

TEST(ResponsesReply, AFailureIsAnErrorEventAndThenFailed) {
  Session session;
  const text::StreamEvent content{text::StreamEvent::Kind::kContent, "par", 0, "", "", false};
  std::string frames = session.reply.begin(10);
  frames += session.reply.update({0, {&content, 1}, {}});
  frames += session.reply.fail(to_api_error(unavailable("rank 1 is gone")));
  const ResponseEvents events = read_response_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.response.at("status"), "failed");
  EXPECT_EQ(json::dump(events.response.at("error")),
            R"({"code":"unavailable","message":"rank 1 is gone"})");
  EXPECT_EQ(events.types().at(events.types().size() - 2), "error");
  EXPECT_TRUE(session.stored.empty());
}

TEST(ResponsesReply, AReplayIsTheSameResponse) {
  Session session;
  tandem::testing::stream(
      session.reply,
      with_tools("plan</think>On it." +
                 dsml_block(dsml_call("ls", dsml_string("path", "/")) +
                            dsml_call("apply_patch", dsml_string("input", "x")))),
      {5});
  const json::Object stored = session.stored.at(0);
  const std::string all = replay_response(stored, -1);
  const ResponseEvents events = read_response_events(all);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(json::Value(events.response), json::Value(stored));
  const std::string rest = replay_response(stored, 4);
  EXPECT_EQ(rest, all.substr(all.size() - rest.size()));
  EXPECT_THAT(rest, HasSubstr("\"sequence_number\":5"));
  EXPECT_THAT(rest, Not(HasSubstr("\"sequence_number\":4,")));
}

// A20: every token of the text has its log-probability, once, in deltas and in the final part.
TEST(ResponsesReply, LogprobsOfTheText) {
  IdSource ids(1, 2);
  const ManualClock clock;
  const ResponsesRequest parsed = *parse_responses_request(
      json::parse(R"({"model":"m","input":"hi","top_logprobs":1})").value(), NoLookup(), ids);
  EXPECT_EQ(parsed.task.sampling.n_logprobs, 1);
  const auto token_text = [](TokenId token) { return token == 1 ? "<" : "b"; };
  ResponsesReply reply(parsed.settings, "m", ids, clock, {}, token_text);
  const auto token = [](TokenId id) { return runtime::TokenOutput{id, -0.5F, {{id, -0.5F}}}; };
  using Event = text::StreamEvent;
  const Event a{Event::Kind::kContent, "b", 0, "", "", false};
  const Event b{Event::Kind::kContent, "<b", 0, "", "", false};
  const runtime::TokenOutput first[] = {token(2)};
  const runtime::TokenOutput held[] = {token(1)};
  const runtime::TokenOutput last[] = {token(2)};
  std::string frames = reply.begin(1);
  frames += reply.update({0, {&a, 1}, first});
  frames += reply.update({0, {}, held});
  frames += reply.update({0, {&b, 1}, last});
  frames += reply.end_choice({});
  frames += reply.finish();
  const ResponseEvents events = read_response_events(frames);
  EXPECT_THAT(events.problems, IsEmpty());
  std::string in_deltas;
  for (const json::Value& event : events.events) {
    if (event.at("type") == "response.output_text.delta") {
      for (const json::Value& entry : event.at("logprobs").get_array()) {
        in_deltas += std::string(entry.at("token").get_string());
      }
    }
  }
  EXPECT_EQ(in_deltas, "b<b");
  const json::Value& part = item(events.response, 0).at("content").at(0);
  EXPECT_EQ(part.at("logprobs").get_array().size(), 3U);
  EXPECT_EQ(part.at("logprobs").at(1).at("top_logprobs").at(0).at("token"), "<");
  const ResponseEvents again = read_response_events(replay_response(events.response, -1));
  EXPECT_EQ(json::Value(again.response), json::Value(events.response));
}

TEST(ResponsesReply, AResponseThatCouldNotBeStoredSaysSo) {
  IdSource ids(1, 2);
  const ManualClock clock;
  const ResponsesRequest parsed = *parse_responses_request(
      json::parse(R"({"model":"m","input":"hi"})").value(), NoLookup(), ids);
  ResponsesReply kept(parsed.settings, "m", ids, clock, [](const json::Object&) { return true; });
  ResponsesReply lost(parsed.settings, "m", ids, clock, [](const json::Object&) { return false; });
  const Script script = with_tools("t</think>a");
  EXPECT_EQ(tandem::testing::whole(kept, script).at("store"), json::Value(true));
  EXPECT_EQ(tandem::testing::whole(lost, script).at("store"), json::Value(false));
}

// The checker of this file itself: every frame that is lost is noticed.
TEST(ResponsesReply, TheCheckerNoticesEveryLostFrame) {
  Session session;
  const std::string frames =
      tandem::testing::stream(session.reply, with_tools("t</think>answer"), {4});
  for (std::size_t at = 0; at < frames.size();) {
    const std::size_t end = frames.find("\n\n", at) + 2;
    const std::string without = frames.substr(0, at) + frames.substr(end);
    EXPECT_THAT(read_response_events(without).problems, Not(IsEmpty())) << frames.substr(at, 80);
    at = end;
  }
}

TEST(StringMemberReader, DecodesAtEveryCut) {
  const std::string value = "a\"b\\\n\t\x01 \xC3\xA9 \xF0\x9F\x98\x80/";
  const std::string text = R"( {"in\"put" : "a\"b\\\n\t\u0001 \u00e9 \ud83d\ude00\/"} )";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    StringMemberReader reader;
    std::string out = reader.feed(text.substr(0, cut));
    out += reader.feed(text.substr(cut));
    EXPECT_EQ(out, value);
    EXPECT_TRUE(reader.found());
  }
  StringMemberReader none;
  EXPECT_EQ(none.feed("{}"), "");
  EXPECT_FALSE(none.found());
}

TEST(OpaqueText, ComesBackAndTellsForeignTextApart) {
  for (const std::string_view text : {"", "a", "ab", "abc", "abcd", "\xE4\xB8\x96\n"}) {
    EXPECT_EQ(unwrap_opaque(wrap_opaque(text)), text);
  }
  EXPECT_EQ(unwrap_opaque("gAAAAABpM0Yj"), std::nullopt);
  EXPECT_EQ(unwrap_opaque("tandem1.%%%%"), std::nullopt);
}

}  // namespace
}  // namespace tandem::protocol
