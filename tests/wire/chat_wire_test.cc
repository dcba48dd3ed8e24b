// /v1/chat/completions and /v1/completions over a socket: api.md A1-A22, A35-A40, field-cases B and
// C as far as they are visible on the wire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "foundation/net/sse_parser.h"
#include "tests/wire/wire_server.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTwoCalls =
    "plan</think>On it.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"a\">\n"
    "<｜DSML｜parameter name=\"x\" string=\"true\">l\"s 2>&1\xE4\xB8\x96</｜DSML｜parameter>\n"
    "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"b\">\n"
    "<｜DSML｜parameter name=\"n\" string=\"false\">7</｜DSML｜parameter>\n"
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object",)"
    R"("properties":{"x":{"type":"string"}}}}},)"
    R"({"type":"function","function":{"name":"b","parameters":{"type":"object",)"
    R"("properties":{"n":{"type":"integer"}}}}}])";

std::string request(const std::string& members, const std::string& content = "go") {
  return R"({"model":"deepseek-v4-flash","messages":[{"role":"user","content":")" + content +
         R"("}])" + (members.empty() ? "" : "," + members) + "}";
}

// One choice put together from its chunks, as clients do it; checks the rules of the stream.
struct Choice {
  std::string content;
  std::string reasoning;
  std::map<std::int64_t, std::pair<std::string, std::string>> calls;  // index -> name, arguments
  std::vector<std::string> finish_reasons;
};

struct Stream {
  std::map<std::int64_t, Choice> choices;
  std::vector<json::Value> usages;
  std::vector<std::string> problems;
  json::Value error;
};

class ChatReader {
 public:
  explicit ChatReader(Stream& out) : out_(out) {}

  void take(const std::string& data) {
    expect(!done_, "data after [DONE]");
    if (data == "[DONE]") {
      done_ = true;
      return;
    }
    const json::Value chunk = json::parse(data).value();
    if (const json::Value* error = json::find(chunk, "error")) {
      out_.error = *error;
      return;
    }
    const std::string id(chunk.at("id").get_string());
    expect(id_.empty() || id == id_, "the id changed");
    id_ = id;
    const json::Value* usage = json::find(chunk, "usage");
    if (usage != nullptr && usage->is_object()) {
      expect(chunk.at("choices").get_array().empty(), "usage beside choices");
      out_.usages.push_back(*usage);
    }
    for (const json::Value& choice : chunk.at("choices").get_array()) {
      take_choice(choice);
    }
  }

  void finish() { expect(done_, "no [DONE]"); }

 private:
  void expect(bool right, const std::string& what) {
    if (!right) {
      out_.problems.push_back(what);
    }
  }

  void take_choice(const json::Value& entry) {
    const auto index = entry.at("index").to_number<std::int64_t>();
    const bool is_first = out_.choices.count(index) == 0;
    Choice& choice = out_.choices[index];
    expect(choice.finish_reasons.empty(), "a chunk after the finish_reason");
    const json::Value& delta = entry.at("delta");
    expect(is_first == (json::find(delta, "role") != nullptr), "role in the first chunk only");
    if (const json::Value* content = json::find(delta, "content")) {
      choice.content += std::string(content->get_string());
    }
    if (const json::Value* reasoning = json::find(delta, "reasoning_content")) {
      choice.reasoning += std::string(reasoning->get_string());
    }
    if (const json::Value* calls = json::find(delta, "tool_calls")) {
      for (const json::Value& call : calls->get_array()) {
        take_call(call, choice);
      }
    }
    if (entry.at("finish_reason").is_string()) {
      choice.finish_reasons.emplace_back(entry.at("finish_reason").get_string());
    }
  }

  void take_call(const json::Value& call, Choice& choice) {
    const auto index = call.at("index").to_number<std::int64_t>();
    const bool is_first = choice.calls.count(index) == 0;
    expect(is_first == (json::find(call, "id") != nullptr), "id in the first delta of a call only");
    auto& [name, arguments] = choice.calls[index];
    if (const json::Value* given = json::find(call.at("function"), "name")) {
      name += std::string(given->get_string());
    }
    arguments += std::string(call.at("function").at("arguments").get_string());
  }

  Stream& out_;
  std::string id_;
  bool done_ = false;
};

Stream read_stream(const net::HttpResponse& response) {
  EXPECT_EQ(response.status, 200) << response.body;
  Stream out;
  ChatReader reader(out);
  net::SseParser parser;
  for (const net::SseEvent& event : parser.feed(response.body)) {
    reader.take(event.data);
  }
  reader.finish();
  EXPECT_THAT(out.problems, ElementsAre());
  EXPECT_THAT(response.body, Not(HasSubstr("DSML")));
  return out;
}

// A18, A3, A8: two calls, exact values, both forms alike.
TEST(ChatWire, TwoCallsStreamedAndWhole) {
  WireServer server([](const std::string&) { return std::string(kTwoCalls); });
  const json::Value whole = server.post_json("/v1/chat/completions", request(kTools));
  const json::Value& choice = whole.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(choice.at("message").at("content"), "On it.");
  EXPECT_EQ(choice.at("message").at("reasoning_content"), "plan");
  const Stream stream = read_stream(
      server.post("/v1/chat/completions", request(std::string(kTools) + R"(,"stream":true)")));
  const Choice& streamed = stream.choices.at(0);
  EXPECT_THAT(streamed.finish_reasons, ElementsAre("tool_calls"));
  EXPECT_EQ(streamed.content, "On it.");
  ASSERT_EQ(streamed.calls.size(), 2U);
  for (std::int64_t i = 0; i < 2; ++i) {
    const json::Value& call =
        choice.at("message").at("tool_calls").at(static_cast<std::size_t>(i)).at("function");
    EXPECT_EQ(call.at("name"), json::Value(streamed.calls.at(i).first));
    EXPECT_EQ(call.at("arguments"), json::Value(streamed.calls.at(i).second));
  }
  EXPECT_EQ(json::parse(streamed.calls.at(0).second).value().at("x"), "l\"s 2>&1\xE4\xB8\x96");
  EXPECT_EQ(json::parse(streamed.calls.at(1).second).value().at("n"), 7);
}

// A1, A2, B-05: at every limit: "length", complete calls only in the whole form, no markup.
TEST(ChatWire, EveryTokenLimit) {
  WireServer server([](const std::string&) { return std::string(kTwoCalls); });
  const std::size_t n_tokens = tokens_of(kTwoCalls).size();
  for (std::size_t limit = 1; limit <= n_tokens + 1; limit += 3) {
    const std::string members = std::string(kTools) + fmt::format(R"(,"max_tokens":{})", limit);
    const std::string expected = limit <= n_tokens ? "length" : "tool_calls";
    const json::Value whole = server.post_json("/v1/chat/completions", request(members));
    EXPECT_EQ(whole.at("choices").at(0).at("finish_reason"), json::Value(expected)) << limit;
    EXPECT_EQ(whole.at("usage").at("completion_tokens").to_number<std::size_t>(),
              std::min(limit, n_tokens + 1));
    const json::Value* calls = json::find(whole.at("choices").at(0).at("message"), "tool_calls");
    for (std::size_t i = 0; calls != nullptr && i < calls->get_array().size(); ++i) {
      EXPECT_TRUE(json::parse(calls->at(i).at("function").at("arguments").get_string()).ok());
    }
    EXPECT_THAT(json::dump(whole), Not(HasSubstr("DSML")));
    const Stream stream =
        read_stream(server.post("/v1/chat/completions", request(members + R"(,"stream":true)")));
    EXPECT_THAT(stream.choices.at(0).finish_reasons, ElementsAre(expected));
  }
}

// A13, C-02: stop strings work in the answer and nowhere else.
TEST(ChatWire, StopStringsDoNotFireInThoughts) {
  WireServer server([](const std::string&) { return "the Q: is</think>42 Q: next"; });
  const std::string members = R"("stop":["Q:"])";
  const json::Value whole = server.post_json("/v1/chat/completions", request(members));
  const json::Value& message = whole.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("content"), "42 ");
  EXPECT_EQ(message.at("reasoning_content"), "the Q: is");
  EXPECT_EQ(whole.at("choices").at(0).at("finish_reason"), "stop");
  const Stream stream =
      read_stream(server.post("/v1/chat/completions", request(members + R"(,"stream":true)")));
  EXPECT_EQ(stream.choices.at(0).content, "42 ");
  EXPECT_TRUE(server.engine().wait_until_idle());
}

// A21: usage where it belongs, and only if it was asked for.
TEST(ChatWire, UsageInTheStream) {
  WireServer server([](const std::string&) { return "hm</think>hi"; },
                    [](EngineScript& script) { script.cached_tokens = 3; });
  const auto stream = [&server](const std::string& options) {
    return read_stream(server.post("/v1/chat/completions", request(R"("stream":true)" + options)));
  };
  EXPECT_TRUE(stream("").usages.empty());
  EXPECT_TRUE(stream(R"(,"stream_options":{})").usages.empty());
  const Stream with = stream(R"(,"stream_options":{"include_usage":true})");
  ASSERT_EQ(with.usages.size(), 1U);
  EXPECT_EQ(with.usages[0].at("prompt_tokens_details").at("cached_tokens").to_number<int>(), 3);
}

// A19: choices do not share parser state.
TEST(ChatWire, ThreeChoices) {
  WireServer server([](const std::string&) { return std::string(kTwoCalls); });
  const Stream stream = read_stream(server.post(
      "/v1/chat/completions", request(std::string(kTools) + R"(,"n":3,"stream":true)")));
  ASSERT_EQ(stream.choices.size(), 3U);
  for (const auto& [index, choice] : stream.choices) {
    EXPECT_EQ(choice.calls.size(), 2U);
    EXPECT_EQ(choice.reasoning, "plan");
    EXPECT_THAT(choice.finish_reasons, ElementsAre("tool_calls"));
  }
}

// A11, A12, B-11: a conversation that ends with the assistant.
TEST(ChatWire, AssistantTurnsAtTheEnd) {
  WireServer server([](const std::string&) { return "x</think>y"; });
  auto prompt_of = [&server, n = std::size_t{0}](const std::string& members) mutable {
    server.post_json("/v1/chat/completions",
                     R"({"model":"deepseek-v4-flash","messages":[{"role":"user","content":"hi"},)" +
                         members + "}");
    return server.prompt(n++);
  };
  EXPECT_THAT(prompt_of(R"({"role":"assistant","content":"alpha"}])"),
              EndsWith("alpha<｜end▁of▁sentence｜><｜Assistant｜><think>"));
  EXPECT_THAT(prompt_of(R"({"role":"assistant","content":""}])"),
              EndsWith("<｜User｜>hi<｜Assistant｜><think>"));
  EXPECT_THAT(prompt_of(R"({"role":"assistant","content":"alpha"}],
                         "continue_final_message":true,"add_generation_prompt":false)"),
              EndsWith("</think>alpha"));
  EXPECT_EQ(server
                .post("/v1/chat/completions",
                      request(R"("continue_final_message":true,"add_generation_prompt":true)"))
                .status,
            400);
}

// A10, A23: calls of the history with arguments as an object, with empty or no reasoning.
TEST(ChatWire, HistoriesInEveryForm) {
  WireServer server([](const std::string&) { return "x</think>y"; });
  const auto history = [](const std::string& arguments, const std::string& reasoning) {
    return R"({"model":"deepseek-v4-flash",)" + std::string(kTools) +
           R"(,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,)" +
           reasoning +
           R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"a","arguments":)" +
           arguments + R"(}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]})";
  };
  server.post_json("/v1/chat/completions", history(R"("{\"x\":\"1\"}")", ""));
  server.post_json("/v1/chat/completions", history(R"({"x":"1"})", ""));
  server.post_json("/v1/chat/completions", history(R"({"x":"1"})", R"("reasoning_content":"",)"));
  EXPECT_EQ(server.prompt(0), server.prompt(1));
  EXPECT_EQ(server.prompt(1), server.prompt(2));
  server.post_json("/v1/chat/completions", history(R"("{\"x\": \"/tm")", ""));
  EXPECT_THAT(server.prompt(3), HasSubstr("name=\"arguments\""));
}

// A40, B-09: "none" is never an error and shows no tools.
TEST(ChatWire, ToolChoiceNone) {
  WireServer server([](const std::string&) { return "x</think>y"; });
  server.post_json("/v1/chat/completions", request(R"("tool_choice":"none")"));
  server.post_json("/v1/chat/completions",
                   request(std::string(kTools) + R"(,"tool_choice":"none")"));
  EXPECT_EQ(server.prompt(0), server.prompt(1));
}

// A38: max_completion_tokens wins.
TEST(ChatWire, BothTokenLimits) {
  WireServer server([](const std::string&) { return "x</think>yyyyyyyy"; });
  server.post_json("/v1/chat/completions", request(R"("max_tokens":2,"max_completion_tokens":5)"));
  EXPECT_EQ(server.engine().requests().at(0).max_tokens, 5);
}

// A34, A35: what cannot be served is refused before the stream, with true numbers.
TEST(ChatWire, ContextLength) {
  WireServer server([](const std::string&) { return "x"; });
  const net::HttpResponse response =
      server.post("/v1/chat/completions", request(R"("stream":true)", std::string(5000, 'x')));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("context_length_exceeded"));
  EXPECT_THAT(response.body, HasSubstr("4096"));
}

// A35, C-04: an engine that fails ends the stream with one error and no finish_reason.
TEST(ChatWire, AFailingEngine) {
  WireServer server([](const std::string&) { return "hm</think>Hel"; },
                    [](EngineScript& script) { script.error = unavailable("rank 1 is gone"); });
  const Stream stream =
      read_stream(server.post("/v1/chat/completions", request(R"("stream":true)")));
  EXPECT_EQ(stream.error.at("message"), "rank 1 is gone");
  EXPECT_TRUE(stream.choices.at(0).finish_reasons.empty());
  EXPECT_EQ(server.post("/v1/chat/completions", request("")).status, 503);
}

// A37: a client that leaves while it waits for a whole answer.
TEST(ChatWire, AClientThatLeavesWithoutAStream) {
  WireServer server([](const std::string&) { return "hm"; },
                    [](EngineScript& script) { script.endless = true; });
  net::HttpRequest message;
  message.method = "POST";
  message.target = "/v1/chat/completions";
  message.body = request("");
  message.idle_timeout_ms = 300;
  const auto url = net::parse_url(fmt::format("http://127.0.0.1:{}", server.port()));
  EXPECT_FALSE(net::http_fetch(*url, message).ok());
  EXPECT_TRUE(server.engine().wait_until_idle());
  EXPECT_THAT(server.fetch("GET", "/metrics").body,
              Not(HasSubstr("vllm:request_success_total{finished_reason=\"abort\"")));
}

// 200 streams at once: none loses, repeats or mixes up an event.
TEST(ChatWire, ManyStreamsAtOnce) {
  constexpr std::size_t kStreams = 200;
  const auto answer = [](const std::string& name) {
    std::string out;
    for (int i = 0; i < 40; ++i) {
      out += fmt::format("{}.{} ", name, i);
    }
    return out;
  };
  WireServer server(
      [&answer](const std::string& prompt) {
        const std::size_t at = prompt.rfind("stream");
        return "t</think>" + answer(prompt.substr(at, prompt.find('<', at) - at));
      },
      [](EngineScript& script) { script.pause_us = 100; });
  std::vector<net::HttpResponse> responses(kStreams);
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < kStreams; ++i) {
    clients.emplace_back([&server, &responses, i] {
      responses[i] = server.post("/v1/chat/completions",
                                 request(R"("stream":true)", fmt::format("stream{}", i)));
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    EXPECT_EQ(read_stream(responses[i]).choices.at(0).content, answer(fmt::format("stream{}", i)));
  }
}

TEST(CompletionsWire, TextEchoChoicesAndLimits) {
  WireServer server([](const std::string& prompt) {
    return prompt.find("2 +") != std::string::npos ? " 4" : "?";
  });
  const std::string head = R"({"model":"deepseek-v4-flash","prompt":"2 + 2 =")";
  const json::Value plain = server.post_json("/v1/completions", head + "}");
  EXPECT_EQ(plain.at("choices").at(0).at("text"), " 4");
  EXPECT_EQ(plain.at("object"), "text_completion");
  EXPECT_EQ(server.engine().requests().at(0).max_tokens, 16);
  const json::Value echoed =
      server.post_json("/completions", head + R"(,"echo":true,"n":2,"max_tokens":1})");
  ASSERT_EQ(echoed.at("choices").get_array().size(), 2U);
  EXPECT_EQ(echoed.at("choices").at(1).at("text"), "2 + 2 = ");
  EXPECT_EQ(echoed.at("choices").at(1).at("finish_reason"), "length");
  const net::HttpResponse streamed = server.post(
      "/v1/completions", head + R"(,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_THAT(streamed.body, HasSubstr("\"finish_reason\":\"stop\""));
  EXPECT_THAT(streamed.body, HasSubstr("\"completion_tokens\":3"));
  EXPECT_THAT(streamed.body, EndsWith("data: [DONE]\n\n"));
}

TEST(CompletionsWire, PromptsAsTokensAndWrongOnes) {
  WireServer server([](const std::string&) { return "x"; });
  const auto status = [&server](const std::string& members) {
    return server.post("/v1/completions", R"({"model":"deepseek-v4-flash",)" + members + "}")
        .status;
  };
  EXPECT_EQ(status(R"("prompt":[5,6,7])"), 200);
  EXPECT_EQ(server.engine().requests().at(0).prompt, (std::vector<TokenId>{5, 6, 7}));
  EXPECT_EQ(status(R"("prompt":["a"])"), 200);
  for (const char* members :
       {R"("prompt":[])", R"("prompt":["a","b"])", R"("prompt":[-1])", R"("n":1)",
        R"("prompt":"a","suffix":"b")", R"("prompt":"a","best_of":3)",
        R"("prompt":"a","echo":true,"logprobs":1)"}) {
    EXPECT_EQ(status(members), 400) << members;
  }
}

}  // namespace
}  // namespace tandem::testing
