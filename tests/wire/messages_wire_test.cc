// /v1/messages over a socket: api.md A29-A33, field-case C-09.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/message_events.h"
#include "tests/wire/wire_server.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kCall =
    "plan</think>Look:\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"Bash\">\n"
    "<｜DSML｜parameter name=\"command\" string=\"true\">ls 2>&1</｜DSML｜parameter>\n"
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
constexpr const char* kTools =
    R"("tools":[{"name":"Bash","description":"d","input_schema":{"type":"object",)"
    R"("properties":{"command":{"type":"string"}}}}],)";
constexpr const char* kThinking = R"("thinking":{"type":"adaptive"},)";

std::string body(const std::string& members, const std::string& messages) {
  return R"({"model":"claude-opus-4","max_tokens":2000,)" + members + R"("messages":[)" + messages +
         "]}";
}

std::string user(const std::string& text) {
  return R"({"role":"user","content":")" + text + R"("})";
}

TEST(MessagesWire, WholeAndStreamedFormsAgree) {
  WireServer server([](const std::string&) { return std::string(kCall); },
                    [](EngineScript& script) { script.cached_tokens = 5; });
  const std::string members = std::string(kTools) + kThinking;
  const json::Value whole = server.post_json("/v1/messages?beta=true", body(members, user("go")));
  EXPECT_EQ(whole.at("stop_reason"), "tool_use");
  EXPECT_EQ(whole.at("content").at(2).at("input").at("command"), "ls 2>&1");
  EXPECT_EQ(whole.at("usage").at("cache_read_input_tokens").to_number<int>(), 5);
  const net::HttpResponse streamed =
      server.post("/v1/messages", body(members + R"("stream":true,)", user("go")));
  const MessageEvents events = read_message_events(streamed.body);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_THAT(streamed.header("request-id"), HasSubstr("req_"));
  EXPECT_EQ(events.message.at("stop_reason"), whole.at("stop_reason"));
  EXPECT_EQ(events.message.at("usage"), whole.at("usage"));
  EXPECT_EQ(events.message.at("content").get_array().size(), 3U);
  EXPECT_EQ(events.message.at("content").at(1), whole.at("content").at(1));
}

// C-09: two turns of an agent, with a system message between and a result as a list.
TEST(MessagesWire, AgentLoop) {
  WireServer server([](const std::string& prompt) {
    return prompt.find("<tool_result>") == std::string::npos ? std::string(kCall)
                                                             : "ok</think>Done.";
  });
  const std::string members = std::string(kTools) + kThinking;
  const json::Value first = server.post_json("/v1/messages", body(members, user("go")));
  const json::Value& call = first.at("content").at(2);
  const std::string turns =
      user("go") + R"(,{"role":"system","content":"note"},{"role":"assistant","content":)" +
      json::dump(first.at("content")) +
      R"(},{"role":"user","content":[{"type":"tool_result","tool_use_id":)" +
      json::dump(call.at("id")) +
      R"(,"is_error":true,"content":[{"type":"text","text":"a.txt"}]}]})";
  const json::Value second = server.post_json("/v1/messages", body(members, turns));
  EXPECT_EQ(second.at("stop_reason"), "end_turn");
  EXPECT_EQ(second.at("content").at(1).at("text"), "Done.");
  EXPECT_THAT(server.prompt(1), HasSubstr("<tool_result>a.txt</tool_result>"));
  EXPECT_THAT(server.prompt(1), HasSubstr("note"));
}

// A30: the prompt does not depend on the billing line.
TEST(MessagesWire, TheBillingLineDoesNotChangeThePrompt) {
  WireServer server([](const std::string&) { return "hi"; });
  for (const char* hash : {"11111", "22222"}) {
    server.post_json("/v1/messages",
                     body(R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=)" +
                              std::string(hash) + R"(;"},{"type":"text","text":"s"}],)",
                          user("go")));
  }
  EXPECT_EQ(server.prompt(0), server.prompt(1));
}

TEST(MessagesWire, CountedTokensAreUsedTokens) {
  WireServer server([](const std::string&) { return "hi"; });
  const std::string request = body(kTools, user("go"));
  const json::Value counted = server.post_json("/v1/messages/count_tokens", request);
  const json::Value used = server.post_json("/v1/messages", request);
  EXPECT_EQ(counted.at("input_tokens").to_number<int>(),
            used.at("usage").at("input_tokens").to_number<int>());
}

// Without "thinking" nothing is thought, and an assistant turn at the end is continued.
TEST(MessagesWire, NoThinkingUnlessAskedAndPrefill) {
  WireServer server([](const std::string&) { return "ginning"; });
  const json::Value message = server.post_json(
      "/v1/messages", body("", user("go") + R"(,{"role":"assistant","content":"be"})"));
  EXPECT_EQ(message.at("content").at(0).at("text"), "ginning");
  EXPECT_THAT(server.prompt(0), ::testing::EndsWith("</think>be"));
}

TEST(MessagesWire, EveryTokenLimitEndsTheTurnWithoutABrokenCall) {
  WireServer server([](const std::string&) { return std::string(kCall); });
  const std::size_t n_tokens = tokens_of(kCall).size();
  for (std::size_t limit = 1; limit <= n_tokens + 1; limit += 5) {
    const json::Value whole = server.post_json(
        "/v1/messages", R"({"model":"deepseek-v4-flash","max_tokens":)" + std::to_string(limit) +
                            "," + kTools + kThinking + R"("messages":[)" + user("go") + "]}");
    EXPECT_EQ(whole.at("stop_reason"), limit <= n_tokens ? "max_tokens" : "tool_use") << limit;
    EXPECT_THAT(json::dump(whole), Not(HasSubstr("DSML")));
  }
}

TEST(MessagesWire, PingsWhileNothingComes) {
  server::ServerConfig config;
  config.heartbeat_us = 200'000;
  WireServer server([](const std::string&) { return "hi"; },
                    [](EngineScript& script) {
                      script.steps = {1000};
                      script.pause_us = 2'500'000;
                    },
                    config);
  const MessageEvents events =
      read_message_events(server.post("/v1/messages", body(R"("stream":true,)", user("go"))).body);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_GE(events.pings, 2);
}

TEST(MessagesWire, ErrorsHaveThisApisShape) {
  WireServer server([](const std::string&) { return "hi"; },
                    [](EngineScript& script) { script.error = unavailable("rank 1 is gone"); });
  const auto type = [&server](const std::string& path, const std::string& request, int status) {
    const net::HttpResponse response = server.post(path, request);
    EXPECT_EQ(response.status, status) << request;
    const json::Value error = json::parse(response.body).value();
    EXPECT_EQ(error.at("type"), "error");
    EXPECT_NE(json::find(error, "request_id"), nullptr);
    return std::string(error.at("error").at("type").get_string());
  };
  EXPECT_EQ(type("/v1/messages", "{", 400), "invalid_request_error");
  EXPECT_EQ(type("/v1/messages", R"({"model":"m"})", 400), "invalid_request_error");
  EXPECT_EQ(
      type("/v1/messages", R"({"model":"x","max_tokens":1,"messages":[)" + user("q") + "]}", 404),
      "not_found_error");
  EXPECT_EQ(type("/v1/messages/none", "{}", 404), "not_found_error");
  EXPECT_EQ(type("/v1/messages", body("", user("q")), 503), "overloaded_error");
  const MessageEvents events =
      read_message_events(server.post("/v1/messages", body(R"("stream":true,)", user("q"))).body);
  EXPECT_THAT(events.problems, IsEmpty());
  EXPECT_EQ(events.error.at("message"), "rank 1 is gone");
  EXPECT_EQ(type("/v1/messages", body("", user(std::string(9000, 'x'))), 400),
            "invalid_request_error");
}

TEST(MessagesWire, AKeyOverItsLimitWaits) {
  const TempFolder folder;
  server::ServerConfig config;
  config.api_keys_file = folder.path() + "/keys";
  { std::ofstream(config.api_keys_file) << "anna secret-key-1 rpm=2\nbert secret-key-2 tpm=5\n"; }
  WireServer server([](const std::string&) { return "hi"; }, {}, config);
  const auto send = [&server](const std::string& key) {
    net::HttpRequest request;
    request.method = "POST";
    request.target = "/v1/messages";
    request.body = body("", user("q"));
    request.headers = {{"x-api-key", key}};
    return *net::http_fetch(*net::parse_url(fmt::format("http://127.0.0.1:{}", server.port())),
                            request);
  };
  EXPECT_EQ(send("secret-key-1").status, 200);
  EXPECT_EQ(send("secret-key-1").status, 200);
  const net::HttpResponse refused = send("secret-key-1");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("rate_limit_error"));
  EXPECT_GE(std::stoi(refused.header("retry-after")), 1);
  EXPECT_EQ(send("secret-key-2").status, 200);
  EXPECT_EQ(send("secret-key-2").status, 429);
}

TEST(MessagesWire, AKeyInEitherHeader) {
  const TempFolder folder;
  server::ServerConfig config;
  config.api_keys_file = folder.path() + "/keys";
  { std::ofstream(config.api_keys_file) << "anna secret-key-1\n"; }
  WireServer server([](const std::string&) { return "hi"; }, {}, config);
  const net::HttpResponse refused = server.post("/v1/messages", body("", user("q")));
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.body, HasSubstr("authentication_error"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"x-api-key", "secret-key-1"}, {"Authorization", "Bearer secret-key-1"}}) {
    net::HttpRequest request;
    request.method = "POST";
    request.target = "/v1/messages";
    request.body = body("", user("q"));
    request.headers = {{name, value}};
    const auto url = net::parse_url(fmt::format("http://127.0.0.1:{}", server.port()));
    EXPECT_EQ(net::http_fetch(*url, request)->status, 200);
  }
}

}  // namespace
}  // namespace tandem::testing
