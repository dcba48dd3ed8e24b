// /v1/responses over a socket: api.md A23-A28, field-cases C-07 and C-08, the live verifier's rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/openapi_schemas.h"
#include "tests/support/response_events.h"
#include "tests/wire/wire_server.h"

namespace tandem::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kCall =
    "plan</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
    "<｜DSML｜parameter name=\"x\" string=\"true\">a 2>&1</｜DSML｜parameter>\n"
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
constexpr const char* kTools =
    R"("tools":[{"type":"function","name":"f","parameters":{"type":"object",)"
    R"("properties":{"x":{"type":"string"}},"required":["x"]}}])";

std::string member(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// Calls f first; answers with text once the prompt shows a result.
std::string call_then_answer(const std::string& prompt) {
  return prompt.find("<tool_result>") == std::string::npos ? kCall : "done</think>It works.";
}

TEST(ResponsesWire, WholeAndStreamedFormsAgree) {
  WireServer server([](const std::string&) { return "hm</think>Hello!"; });
  const std::string body = R"({"model":"deepseek-v4-flash","input":"hi","temperature":0)";
  const json::Value whole = server.post_json("/v1/responses", body + "}");
  EXPECT_EQ(openresponses_problems("ResponseResource", whole), "");
  EXPECT_EQ(member(whole, "status"), "completed");
  const net::HttpResponse streamed = server.post("/v1/responses", body + R"(,"stream":true})");
  EXPECT_EQ(streamed.header("content-type"), "text/event-stream");
  EXPECT_THAT(streamed.body, Not(HasSubstr("[DONE]")));
  const ResponseEvents events = read_response_events(streamed.body);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.response.at("usage"), whole.at("usage"));
  ASSERT_EQ(whole.at("output").get_array().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(events.response.at("output").at(i).at("content"),
              whole.at("output").at(i).at("content"));
  }
}

// A24, C-07: the chain carries call and result; the prompt equals that of the whole conversation.
// api.md 3.3: auto drops whole turns from the front, never the system message or the last turn.
TEST(ResponsesWire, TruncationAutoDropsTheOldestTurns) {
  WireServer server([](const std::string&) { return "</think>ok"; });
  const std::string old_turn(5000, 'a');
  const std::string body = R"({"instructions":"Be kind.","input":[{"role":"user","content":")" +
                           old_turn + R"("},{"role":"assistant","content":"one"},)" +
                           R"({"role":"user","content":"second )" + std::string(1500, 'b') +
                           R"("},{"role":"assistant","content":"two"},)" +
                           R"({"role":"user","content":"third"}],"truncation":")";
  const net::HttpResponse refused = server.post("/v1/responses", body + R"(disabled"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("context_length_exceeded"));
  EXPECT_EQ(server.engine().requests().size(), 0U);
  server.post_json("/v1/responses", body + R"(auto"})");
  const std::string prompt = server.prompt(0);
  EXPECT_THAT(prompt, HasSubstr("Be kind."));
  EXPECT_THAT(prompt, HasSubstr("second"));
  EXPECT_THAT(prompt, HasSubstr("third"));
  EXPECT_THAT(prompt, Not(HasSubstr("aaaa")));
  const std::string hopeless =
      R"({"input":")" + std::string(9000, 'c') + R"(","truncation":"auto"})";
  EXPECT_EQ(server.post("/v1/responses", hopeless).status, 400);
}

TEST(ResponsesWire, ToolLoopOverPreviousResponseId) {
  WireServer server(call_then_answer);
  const json::Value first = server.post_json(
      "/v1/responses", std::string(R"({"model":"deepseek-v4-flash","input":"go",)") + kTools + "}");
  const json::Value& call = first.at("output").get_array().back();
  EXPECT_EQ(member(call, "type"), "function_call");
  EXPECT_EQ(json::parse(member(call, "arguments")).value().at("x"), "a 2>&1");
  const std::string result = R"({"type":"function_call_output","call_id":")" +
                             member(call, "call_id") + R"(","output":"ok"})";
  const json::Value second = server.post_json(
      "/v1/responses", R"({"model":"deepseek-v4-flash","previous_response_id":")" +
                           member(first, "id") + R"(","input":[)" + result + "]," + kTools + "}");
  EXPECT_EQ(member(second.at("output").get_array().back().at("content").at(0), "text"),
            "It works.");
  json::Array items{json::Object{{"role", "user"}, {"content", "go"}}};
  for (const json::Value& item : first.at("output").get_array()) {
    items.push_back(item);
  }
  items.push_back(json::parse(result).value());
  server.post_json("/v1/responses", std::string(R"({"model":"deepseek-v4-flash","store":false,)") +
                                        kTools + R"(,"input":)" + json::dump(items) + "}");
  EXPECT_EQ(server.prompt(1), server.prompt(2));
  server.post_json("/v1/responses", R"({"model":"deepseek-v4-flash","previous_response_id":")" +
                                        member(second, "id") + R"(","input":"thanks"})");
  EXPECT_THAT(server.prompt(3), HasSubstr("<tool_result>ok</tool_result>"));
  EXPECT_THAT(server.prompt(3), HasSubstr("It works."));
}

TEST(ResponsesWire, StoredResponsesAreReadListedReplayedAndDeleted) {
  WireServer server([](const std::string&) { return "hm</think>Hello!"; });
  const json::Value made =
      server.post_json("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi"})");
  const std::string path = "/v1/responses/" + member(made, "id");
  EXPECT_EQ(json::parse(server.fetch("GET", path).body).value(), made);
  const json::Value items = json::parse(server.fetch("GET", path + "/input_items").body).value();
  EXPECT_EQ(items.at("data").at(0).at("content").at(0).at("text"), "hi");
  EXPECT_EQ(items.at("has_more"), false);
  const std::string all = server.fetch("GET", path + "?stream=true").body;
  EXPECT_THAT(read_response_events(all).problems, IsEmpty());
  const std::string rest = server.fetch("GET", path + "?stream=true&starting_after=3").body;
  EXPECT_THAT(all, EndsWith(rest));
  EXPECT_THAT(rest, HasSubstr("\"sequence_number\":4,"));
  EXPECT_EQ(server.fetch("GET", path + "?stream=true&starting_after=x").status, 400);
  EXPECT_EQ(server.post(path + "/cancel", "{}").status, 400);
  EXPECT_EQ(server.fetch("DELETE", path).status, 200);
  EXPECT_EQ(server.fetch("DELETE", path).status, 404);
  EXPECT_EQ(server.fetch("GET", path).status, 404);
}

TEST(ResponsesWire, ARestartKeepsStoredResponses) {
  const TempFolder folder;
  server::ServerConfig config;
  config.state_dir = folder.path();
  WireServer server([](const std::string&) { return "hm</think>Hello!"; }, {}, config);
  const json::Value made =
      server.post_json("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi"})");
  server.stop();
  server.start();
  EXPECT_EQ(json::parse(server.fetch("GET", "/responses/" + member(made, "id")).body).value(),
            made);
  server.post_json("/responses", R"({"model":"deepseek-v4-flash","input":"more",
    "previous_response_id":")" + member(made, "id") +
                                     R"("})");
  EXPECT_THAT(server.prompt(1), HasSubstr("Hello!"));
}

// A response that a client saw complete can be continued at once, from the same stream.
TEST(ResponsesWire, TheTerminalEventComesAfterStoring) {
  WireServer server([](const std::string&) { return "hm</think>Hello!"; });
  for (int i = 0; i < 20; ++i) {
    const ResponseEvents events = read_response_events(
        server.post("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi","stream":true})")
            .body);
    const std::string id(events.response.at("id").get_string());
    EXPECT_EQ(server
                  .post("/v1/responses", R"({"model":"deepseek-v4-flash","input":"x",
        "previous_response_id":")" + id + R"("})")
                  .status,
              200);
  }
}

// A25: every limit inside a thought, a text or a call ends as incomplete, streamed and whole.
TEST(ResponsesWire, EveryTokenLimitIsTold) {
  WireServer server([](const std::string&) { return std::string(kCall); });
  const std::size_t n_tokens = tokens_of(kCall).size();
  for (std::size_t limit = 1; limit <= n_tokens + 2; limit += limit < 20 ? 1 : 7) {
    const std::string body = R"({"model":"deepseek-v4-flash","input":"go","store":false,)" +
                             std::string(kTools) + fmt::format(R"(,"max_output_tokens":{})", limit);
    const json::Value whole = server.post_json("/v1/responses", body + "}");
    const bool is_cut = limit <= n_tokens;
    EXPECT_EQ(member(whole, "status"), is_cut ? "incomplete" : "completed") << limit;
    const ResponseEvents events =
        read_response_events(server.post("/v1/responses", body + R"(,"stream":true})").body);
    EXPECT_THAT(events.problems, IsEmpty()) << limit;
    EXPECT_EQ(events.types().back(), is_cut ? "response.incomplete" : "response.completed");
    EXPECT_EQ(events.response.at("output").get_array().size(),
              whole.at("output").get_array().size());
    EXPECT_THAT(json::dump(whole), Not(HasSubstr("DSML")));
  }
}

TEST(ResponsesWire, AFailingEngineEndsTheStreamTruthfully) {
  WireServer server([](const std::string&) { return "hm</think>Hel"; },
                    [](EngineScript& script) { script.error = unavailable("rank 1 is gone"); });
  const ResponseEvents events = read_response_events(
      server.post("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi","stream":true})")
          .body);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.response.at("status"), "failed");
  const net::HttpResponse whole =
      server.post("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi"})");
  EXPECT_EQ(whole.status, 503);
  EXPECT_THAT(whole.body, HasSubstr("rank 1 is gone"));
}

TEST(ResponsesWire, ALongPrefillSendsInProgressEvents) {
  server::ServerConfig config;
  config.heartbeat_us = 200'000;
  WireServer server([](const std::string&) { return "hm</think>Hello!"; },
                    [](EngineScript& script) {
                      script.steps = {1000};
                      script.pause_us = 2'500'000;
                    },
                    config);
  const ResponseEvents events = read_response_events(
      server.post("/v1/responses", R"({"model":"deepseek-v4-flash","input":"hi","stream":true})")
          .body);
  EXPECT_THAT(events.problems, IsEmpty());
  std::size_t beats = 0;
  for (const json::Value& event : events.events) {
    beats += member(event, "type") == "response.in_progress" ? 1 : 0;
  }
  EXPECT_GE(beats, 2U);  // one at the start, at least one while waiting
}

// A28: the body of Codex; the answer names tool and namespace as the client knows them.
TEST(ResponsesWire, CodexNamespacesAndCustomTools) {
  WireServer server([](const std::string& prompt) {
    return prompt.find("<tool_result>") == std::string::npos
               ? "</think>\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"mcp__git__log\">\n"
                 "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"apply_patch\">\n<｜DSML｜parameter "
                 "name=\"input\" string=\"true\">*** Begin</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
                 "</｜DSML｜tool_calls>"
               : "</think>ok";
  });
  const std::string head = R"({"model":"deepseek-v4-flash","store":false,"client_metadata":{"a":1},
    "include":["reasoning.encrypted_content"],"parallel_tool_calls":true,"tool_choice":"auto",
    "tools":[{"type":"namespace","name":"mcp__git","tools":[{"type":"function","name":"log"}]},
      {"type":"custom","name":"apply_patch"},{"type":"web_search"}],"stream":true,"input":[)";
  const std::string user =
      R"({"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]})";
  const ResponseEvents events =
      read_response_events(server.post("/v1/responses", head + user + "]}").body);
  EXPECT_THAT(events.problems, IsEmpty());
  const json::Array& output = events.response.at("output").get_array();
  ASSERT_EQ(output.size(), 2U);
  EXPECT_EQ(member(output[0], "namespace"), "mcp__git");
  EXPECT_EQ(member(output[0], "name"), "log");
  EXPECT_EQ(member(output[1], "input"), "*** Begin");
  const std::string again =
      head + user + "," + json::dump(output[0]) + "," + json::dump(output[1]) +
      R"(,{"type":"custom_tool_call_output","call_id":")" + member(output[1], "call_id") +
      R"(","output":[{"type":"input_text","text":"patched"}]},
                              {"type":"function_call_output","call_id":")" +
      member(output[0], "call_id") + R"(","output":"log"}]})";
  EXPECT_THAT(read_response_events(server.post("/v1/responses", again).body).problems, IsEmpty());
  EXPECT_THAT(server.prompt(1), HasSubstr("<tool_result>log</tool_result>"));
}

TEST(ResponsesWire, CompactionGivesAWindowToContinueFrom) {
  WireServer server([](const std::string& prompt) {
    return prompt.find("Write a summary") != std::string::npos ? "SUMMARY" : "</think>next";
  });
  const json::Value compact = server.post_json(
      "/v1/responses/compact", R"({"model":"deepseek-v4-flash","input":"remember cobalt"})");
  EXPECT_EQ(openresponses_problems("CompactResource", compact), "");
  json::Array input = compact.at("output").get_array();
  input.push_back(json::Object{{"role", "user"}, {"content", "go on"}});
  server.post_json("/v1/responses",
                   json::dump(json::Object{{"model", "deepseek-v4-flash"}, {"input", input}}));
  EXPECT_THAT(server.prompt(1), HasSubstr("SUMMARY"));
  EXPECT_EQ(server.post("/v1/responses/compact", R"({"input":"x"})").status, 400);
}

TEST(ResponsesWire, CountedTokensAreUsedTokens) {
  WireServer server([](const std::string&) { return "hm</think>Hello!"; });
  const std::string body = std::string(R"({"model":"deepseek-v4-flash","input":"hi",)") + kTools +
                           R"(,"instructions":"be brief"})";
  const json::Value counted = server.post_json("/v1/responses/input_tokens", body);
  const json::Value used = server.post_json("/v1/responses", body);
  EXPECT_EQ(counted.at("input_tokens").to_number<int>(),
            used.at("usage").at("input_tokens").to_number<int>());
}

TEST(ResponsesWire, RefusalsHaveTheRightStatusAndShape) {
  WireServer server([](const std::string&) { return "x"; });
  const std::vector<std::pair<std::string, int>> cases = {
      {R"({"model":"deepseek-v4-flash","input":"x","include":["not_supported"]})", 400},
      {R"({"model":"deepseek-v4-flash","input":"x","previous_response_id":"resp_no"})", 400},
      {R"({"model":"other","input":"x"})", 404},
      {R"({"model":"deepseek-v4-flash","input":[{"type":"function_call_output","call_id":"c",
          "output":"x"}]})",
       400},
      {"{", 400}};
  for (const auto& [body, status] : cases) {
    const net::HttpResponse response = server.post("/v1/responses", body);
    EXPECT_EQ(response.status, status) << body;
    const json::Value error = json::parse(response.body).value().at("error");
    for (const char* key : {"message", "type", "param", "code"}) {
      EXPECT_NE(json::find(error, key), nullptr) << key;
    }
  }
  EXPECT_TRUE(server.engine().requests().empty());
}

// A37 for this API: a client that goes is noticed, and nothing of its response stays.
TEST(ResponsesWire, AClientThatGoesEndsTheSequenceAndLeavesNothing) {
  WireServer server([](const std::string&) { return "hm</think>Hello"; },
                    [](EngineScript& script) { script.endless = true; });
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/v1/responses";
  request.body = R"({"model":"deepseek-v4-flash","input":"hi","stream":true})";
  const auto url = net::parse_url(fmt::format("http://127.0.0.1:{}", server.port()));
  std::string seen;
  const auto response = net::http_fetch(*url, request, [&seen](std::string_view piece) {
    seen += piece;
    return seen.find("output_text.delta") == std::string::npos;
  });
  EXPECT_FALSE(response.ok());
  EXPECT_TRUE(server.engine().wait_until_idle());
  const std::size_t at = seen.find("resp_");
  EXPECT_EQ(server.fetch("GET", "/v1/responses/" + seen.substr(at, 37)).status, 404);
}

}  // namespace
}  // namespace tandem::testing
