// The stream decoder: known replies, damaged replies, stop strings, and the property that any cut
// and any tokenisation of the same text gives the same message.
#include "model/text/stream_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/json/json.h"
#include "model/text/utf8.h"
#include "tests/unit/text/test_vocabulary.h"

namespace tandem::text {
namespace {

using Ids = std::vector<TokenId>;
using Events = std::vector<StreamEvent>;
using Kind = StreamEvent::Kind;

const Tokenizer& tokenizer() {
  static const Tokenizer small = make_small_tokenizer();
  return small;
}

// Marks as their tokens, everything else byte by byte: a cut is possible at every byte.
Ids byte_tokens(std::string_view text) {
  Ids out;
  for (const TokenId id : tokenizer().encode(text, {.allow_added_tokens = true})) {
    if (tokenizer().is_added(id)) {
      out.push_back(id);
      continue;
    }
    for (const char c : tokenizer().token_bytes(id)) {
      out.push_back(tokenizer().find_bytes(std::string_view(&c, 1)).value());
    }
  }
  return out;
}

struct Reply {
  DecodedMessage message;
  std::vector<std::string> malformed;
  std::size_t tokens_taken = 0;
};

void take(const Events& events, Reply& reply) {
  for (const StreamEvent& event : events) {
    EXPECT_FALSE(reply.message.stop.has_value()) << "an event after the stop string";
    EXPECT_TRUE(is_valid_utf8(event.text));
    reply.message.add(event);
    if (event.kind == Kind::kMalformed) {
      reply.malformed.push_back(event.text);
    }
  }
}

Reply decode(const Ids& tokens, const StreamOptions& options,
             const std::vector<std::size_t>& cuts = {}) {
  StreamDecoder decoder(tokenizer(), options);
  Reply reply;
  std::size_t at = 0;
  for (const std::size_t cut : cuts) {
    take(decoder.feed(std::span<const TokenId>(tokens).subspan(at, cut - at)), reply);
    at = cut;
  }
  take(decoder.feed(std::span<const TokenId>(tokens).subspan(at)), reply);
  take(decoder.finish(), reply);
  reply.tokens_taken = decoder.tokens_taken();
  return reply;
}

Reply decode_text(std::string_view text, const StreamOptions& options = {}) {
  return decode(byte_tokens(text), options);
}

std::string shown(const Reply& reply) {
  std::string out = "R[" + reply.message.reasoning + "] C[" + reply.message.content + "]";
  for (const DecodedToolCall& call : reply.message.tool_calls) {
    out += " " + call.id + ":" + call.name + call.arguments;
  }
  if (reply.message.truncated_calls > 0) {
    out += " truncated=" + std::to_string(reply.message.truncated_calls);
  }
  if (reply.message.stop) {
    out += " stop[" + *reply.message.stop + "]";
  }
  return out;
}

StreamOptions thinking() {
  StreamOptions options;
  options.starts_in_reasoning = true;
  return options;
}

std::string parameter(const std::string& name, const std::string& string,
                      const std::string& value) {
  return "<｜DSML｜parameter name=\"" + name + "\" string=\"" + string + "\">" + value +
         "</｜DSML｜parameter>";
}

std::string invoke(const std::string& name, const std::string& parameters) {
  return "<｜DSML｜invoke name=\"" + name + "\">\n" + parameters + "\n</｜DSML｜invoke>";
}

std::string block(const std::string& calls) {
  return "\n\n<｜DSML｜tool_calls>\n" + calls + "\n</｜DSML｜tool_calls>";
}

const std::string kEos = "<｜end▁of▁sentence｜>";

struct Case {
  const char* name;
  std::string text;
  StreamOptions options;
  std::string expected;
};

std::vector<Case> well_formed() {
  return {
      {"content", "Hello 🙂", {}, "R[] C[Hello 🙂]"},
      {"reasoning", "think\n</think>\nanswer" + kEos, thinking(), "R[think\n] C[\nanswer]"},
      {"call",
       "r</think>" +
           block(invoke("get_weather", parameter("location", "true", "Beijing") + "\n" +
                                           parameter("days", "false", "3"))) +
           kEos,
       thinking(), R"(R[r] C[] call_0:get_weather{"location": "Beijing", "days": 3})"},
      {"text before a call",
       "I look.\n\n\n" + block(invoke("f", "")).substr(2),
       {},
       "R[] C[I look.\n] call_0:f{}"},
      {"two calls",
       block(invoke("f", parameter("x", "true", "a")) + "\n" + invoke("g", "")),
       {},
       R"(R[] C[] call_0:f{"x": "a"} call_1:g{})"},
      {"quotes and line ends",
       block(invoke("f", parameter("x", "true", "a\"b\\c\n\td\x01"))),
       {},
       R"(R[] C[] call_0:f{"x": "a\"b\\c\n\td\u0001"})"},
      {"brackets in a value",
       block(invoke("bash", parameter("cmd", "true", "a 2>&1 </p> << <"))),
       {},
       R"(R[] C[] call_0:bash{"cmd": "a 2>&1 </p> << <"})"},
      {"markup in a value",
       block(invoke("f",
                    parameter("x", "true", "<｜DSML｜invoke name=\"g\"></｜DSML｜para</think>"))),
       {},
       R"(R[] C[] call_0:f{"x": "<｜DSML｜invoke name=\"g\"></｜DSML｜para</think>"})"},
      {"json values",
       block(invoke("f", parameter("a", "false", "{\"k\": [1, 2.5, null]}") +
                             parameter("b", "false", " true\n") +
                             parameter("c", "false", "\"s\""))),
       {},
       R"(R[] C[] call_0:f{"a": {"k": [1, 2.5, null]}, "b": true, "c": "s"})"},
      {"blanks between tags",
       "\n\n<｜DSML｜tool_calls>  \n\n <｜DSML｜invoke   name=\"f\" > \r\n <｜DSML｜parameter  "
       "name=\"x\" "
       "string=\"true\" >v</｜DSML｜parameter \n>\n\n</｜DSML｜invoke >\n</｜DSML｜tool_calls >\n",
       {},
       R"(R[] C[] call_0:f{"x": "v"})"},
      {"think mark again", "<think>r</think>c", thinking(), "R[r] C[c]"},
      {"closing mark again", "</think>c", {}, "R[] C[c]"},
      {"marks in content",
       "a <think> b </think> c ｜DSML｜",
       {},
       "R[] C[a <think> b </think> c ｜DSML｜]"},
  };
}

std::vector<Case> damaged() {
  StreamOptions declared;
  declared.tool_names = {"f"};
  StreamOptions typed;
  typed.string_parameters = {{"f", "x"}};
  return {
      {"no </think>", "r" + block(invoke("f", "")), thinking(), "R[r] C[] call_0:f{}"},
      {"block inside reasoning", "r" + block(invoke("f", "")) + "\n</think>done", thinking(),
       "R[r] C[done] call_0:f{}"},
      {"cut in a value",
       block(invoke("f", parameter("x", "true", "ab"))).substr(0, 110),
       {},
       "R[] C[] truncated=1"},
      {"cut after a value",
       "ok" + block(invoke("f", parameter("x", "true", "ab"))).substr(0, 140),
       {},
       "R[] C[ok] truncated=1"},
      {"cut in the second call",
       block(invoke("f", "") + "\n<｜DSML｜invoke name=\"g\">\n").substr(0, 120),
       {},
       "R[] C[] call_0:f{} truncated=1"},
      {"cut in the opening", "ok\n\n<｜DSML｜tool_ca", {}, "R[] C[ok]"},
      {"cut in the name", "ok\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f", {}, "R[] C[ok]"},
      {"no block end",
       "\n\n<｜DSML｜tool_calls>\n" + invoke("f", "") + kEos,
       {},
       "R[] C[] call_0:f{}"},
      {"text for json",
       block(invoke("f", parameter("x", "false", "not json"))),
       {},
       R"(R[] C[] call_0:f{"x": "not json"})"},
      {"no string attribute",
       block(invoke("f", "<｜DSML｜parameter name=\"x\">7</｜DSML｜parameter>")),
       {},
       R"(R[] C[] call_0:f{"x": 7})"},
      {"a string by schema", block(invoke("f", parameter("x", "false", "7"))), typed,
       R"(R[] C[] call_0:f{"x": "7"})"},
      {"a quoted string by schema", block(invoke("f", parameter("x", "false", "\"7\""))), typed,
       R"(R[] C[] call_0:f{"x": "7"})"},
      {"a name twice",
       block(invoke("f", parameter("x", "true", "1") + parameter("x", "true", "2"))),
       {},
       R"(R[] C[] call_0:f{"x": "1"})"},
      {"no </invoke>",
       "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n" + parameter("x", "true", "1") +
           "\n<｜DSML｜invoke name=\"g\">\n</｜DSML｜tool_calls>after",
       {},
       R"(R[] C[after] call_0:f{"x": "1"} call_1:g{})"},
      {"junk between parameters",
       block(invoke("f", "junk <b> <" + parameter("x", "true", "1") + " more")),
       {},
       R"(R[] C[] call_0:f{"x": "1"})"},
      {"text after a block",
       block(invoke("f", "")) + "\n\nI wait.",
       {},
       "R[] C[I wait.] call_0:f{}"},
      {"text inside a block",
       "\n\n<｜DSML｜tool_calls>\n" + invoke("f", "") + "\nNow.\n</｜DSML｜tool_calls>",
       {},
       "R[] C[Now.] call_0:f{}"},
      {"a second block",
       block(invoke("f", "")) + block(invoke("g", "")),
       {},
       "R[] C[] call_0:f{} call_1:g{}"},
      {"wrapper twice",
       "\n\n<｜DSML｜tool_calls>" + block(invoke("f", "")),
       {},
       "R[] C[\n\n<｜DSML｜tool_calls>] call_0:f{}"},
      {"empty block", "x\n\n<｜DSML｜tool_calls>\n</｜DSML｜tool_calls>y", {}, "R[] C[xy]"},
      {"prose with the mark",
       "Use <｜DSML｜tool_calls> and\n<｜DSML｜x> or <｜DSML｜invoke> for </｜DSML｜a>",
       {},
       "R[] C[Use <｜DSML｜tool_calls> and\n<｜DSML｜x> or <｜DSML｜invoke> for </｜DSML｜a>]"},
      {"no wrapper", "x\n\n" + invoke("f", parameter("y", "true", "1")) + "\n</｜DSML｜tool_calls>",
       declared, R"(R[] C[x] call_0:f{"y": "1"})"},
      {"no wrapper, not declared", "\n" + invoke("g", ""), declared,
       "R[] C[\n<｜DSML｜invoke name=\"g\">\n\n</｜DSML｜invoke>]"},
  };
}

TEST(StreamDecoder, WellFormedReplies) {
  for (const Case& test : well_formed()) {
    const Reply reply = decode_text(test.text, test.options);
    EXPECT_EQ(shown(reply), test.expected) << test.name;
    EXPECT_TRUE(reply.malformed.empty()) << test.name;
  }
}

TEST(StreamDecoder, DamagedReplies) {
  for (const Case& test : damaged()) {
    EXPECT_EQ(shown(decode_text(test.text, test.options)), test.expected) << test.name;
  }
}

TEST(StreamDecoder, SaysWhatWasMalformed) {
  const auto reports = [](const std::string& text) { return decode_text(text).malformed; };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(reports("<｜DSML｜tool_calls> and so on"), (Texts{"<｜DSML｜tool_calls> a"}));
  EXPECT_EQ(reports(block(invoke("f", parameter("x", "true", "1") + parameter("x", "true", "2")))),
            (Texts{"<｜DSML｜parameter name=\"x\" string=\"true\">"}));
  EXPECT_EQ(reports(block(invoke("f", "junk"))), (Texts{"junk"}));
  EXPECT_EQ(reports("\n\n<｜DSML｜tool_ca"), (Texts{"<｜DSML｜tool_ca"}));
}

TEST(StreamDecoder, ToolsOffLeavesTheMarkupAsText) {
  StreamOptions options;
  options.parse_tools = false;
  const std::string text = "x" + block(invoke("f", parameter("a", "true", "b")));
  EXPECT_EQ(shown(decode_text(text, options)), "R[] C[" + text + "]");
}

TEST(StreamDecoder, MarksAreKnownByTokenAndNotBySpelling) {
  const std::string spelled = "a</think>" + block(invoke("f", ""));
  const Ids plain = tokenizer().encode(spelled);
  EXPECT_EQ(shown(decode(plain, thinking())), "R[" + spelled + "] C[]");
}

// ---- stop strings

StreamOptions stopping(std::vector<std::string> stop, bool starts_in_reasoning = false) {
  StreamOptions options;
  options.stop = std::move(stop);
  options.starts_in_reasoning = starts_in_reasoning;
  return options;
}

std::vector<Case> stops() {
  StreamOptions included = stopping({"END"});
  included.include_stop = true;
  return {
      {"cut", "one END two", stopping({"END"}), "R[] C[one ] stop[END]"},
      {"included", "one END two", included, "R[] C[one END] stop[END]"},
      {"at the start", "ENDless", stopping({"END"}), "R[] C[] stop[END]"},
      {"only a beginning", "an EN", stopping({"END"}), "R[] C[an EN]"},
      {"overlapping beginnings", "aabaac", stopping({"aac"}), "R[] C[aab] stop[aac]"},
      {"the first to be complete", "abcdef", stopping({"cdef", "bc"}), "R[] C[a] stop[bc]"},
      {"the longest of two at one end", "xaab", stopping({"ab", "aab"}), "R[] C[x] stop[aab]"},
      {"never in reasoning", "END</think>a END b", stopping({"END"}, true),
       "R[END] C[a ] stop[END]"},
      {"not across the end of reasoning", "EN</think>D", stopping({"END"}, true), "R[EN] C[D]"},
      {"never in arguments", block(invoke("f", parameter("x", "true", "END"))), stopping({"END"}),
       R"(R[] C[] call_0:f{"x": "END"})"},
      {"not across a call", "EN" + block(invoke("f", "")) + "D", stopping({"END"}),
       "R[] C[END] call_0:f{}"},
      {"line ends", "a\n\nb", stopping({"\n\n"}), "R[] C[a] stop[\n\n]"},
      {"characters of several bytes", "ab→c🙂d", stopping({"c🙂"}),
       "R[] C[ab→] stop[c🙂]"},
      {"related characters", "è é", stopping({"é"}), "R[] C[è ] stop[é]"},
      {"empty ones are ignored", "abc", stopping({""}), "R[] C[abc]"},
      {"a line end before a call is no content", "a" + block(invoke("f", "")), stopping({"\n\n"}),
       "R[] C[a] call_0:f{}"},
  };
}

TEST(StreamDecoder, StopStrings) {
  for (const Case& test : stops()) {
    EXPECT_EQ(shown(decode_text(test.text, test.options)), test.expected) << test.name;
  }
}

TEST(StreamDecoder, CountsTheTokensUpToTheStop) {
  const Reply reply = decode_text("abENDxyz", stopping({"END"}));
  EXPECT_EQ(reply.tokens_taken, 5U);
  StreamDecoder decoder(tokenizer(), stopping({"b"}));
  EXPECT_FALSE(decoder.stopped());
  decoder.feed(byte_tokens("ab"));
  EXPECT_TRUE(decoder.stopped());
  EXPECT_TRUE(decoder.feed(byte_tokens("cd")).empty());
  EXPECT_TRUE(decoder.finish().empty());
}

// ---- any cut gives the same message

std::vector<Case> all_cases() {
  std::vector<Case> all = well_formed();
  for (std::vector<Case> more : {damaged(), stops()}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

TEST(StreamDecoder, EveryCutGivesTheSameMessage) {
  for (const Case& test : all_cases()) {
    const Ids tokens = byte_tokens(test.text);
    for (std::size_t cut = 0; cut <= tokens.size(); ++cut) {
      const Reply reply = decode(tokens, test.options, {cut});
      ASSERT_EQ(shown(reply), test.expected) << test.name << " cut at " << cut;
    }
    std::vector<std::size_t> all(tokens.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
    }
    EXPECT_EQ(shown(decode(tokens, test.options, all)), test.expected) << test.name;
    const Ids merged = tokenizer().encode(test.text, {.allow_added_tokens = true});
    EXPECT_EQ(shown(decode(merged, test.options)), test.expected) << test.name;
  }
}

TEST(StreamDecoder, ATruncatedReplyShowsABeginningOfTheWholeOne) {
  // Cutting the reply anywhere never shows markup and never takes text back.
  for (const Case& test : well_formed()) {
    const Ids tokens = byte_tokens(test.text);
    const Reply whole = decode(tokens, test.options);
    for (std::size_t n = 0; n <= tokens.size(); ++n) {
      StreamDecoder decoder(tokenizer(), test.options);
      Reply part;
      take(decoder.feed(std::span<const TokenId>(tokens).first(n)), part);
      const auto begins = [](const std::string& text, const std::string& begin) {
        return text.compare(0, begin.size(), begin) == 0;
      };
      ASSERT_TRUE(begins(whole.message.reasoning, part.message.reasoning)) << test.name << n;
      ASSERT_TRUE(begins(whole.message.content, part.message.content)) << test.name << n;
      ASSERT_LE(part.message.tool_calls.size(), whole.message.tool_calls.size());
      take(decoder.finish(), part);
      for (const DecodedToolCall& call : part.message.tool_calls) {
        ASSERT_TRUE(json::parse(call.arguments).ok()) << call.arguments;
      }
    }
  }
}

TEST(StreamDecoder, ArgumentsGrowWhileAValueArrives) {
  StreamDecoder decoder(tokenizer(), {});
  std::string text = block(invoke("f", parameter("x", "true", "long text 你好 with \"quotes\"")));
  std::string arguments;
  int n_deltas = 0;
  for (const TokenId token : byte_tokens(text)) {
    for (const StreamEvent& event : decoder.feed(token)) {
      if (event.kind == Kind::kToolCallArguments) {
        EXPECT_TRUE(is_valid_utf8(event.text));
        arguments += event.text;
        ++n_deltas;
      }
    }
  }
  EXPECT_GT(n_deltas, 20);
  EXPECT_EQ(arguments, R"({"x": "long text 你好 with \"quotes\""})");
}

TEST(StreamDecoder, TellsTheChannel) {
  StreamDecoder decoder(tokenizer(), thinking());
  EXPECT_EQ(decoder.channel(), StreamChannel::kReasoning);
  decoder.feed(byte_tokens("r</think>c"));
  EXPECT_EQ(decoder.channel(), StreamChannel::kContent);
  decoder.feed(byte_tokens("\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">"));
  EXPECT_EQ(decoder.channel(), StreamChannel::kToolCall);
  EXPECT_EQ(decoder.tool_calls_begun(), 1);
}

TEST(StreamDecoder, IncompleteBytesWaitAndBecomeReplacementCharactersAtTheEnd) {
  const TokenId begin = tokenizer().find_bytes("\xF0\x9F").value();
  const TokenId end = tokenizer().find_bytes("\x99\x82").value();
  StreamDecoder decoder(tokenizer(), {});
  EXPECT_TRUE(decoder.feed(begin).empty());
  const Events whole = decoder.feed(end);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].text, "🙂");
  EXPECT_TRUE(decoder.feed(begin).empty());
  const Events rest = decoder.finish();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].text, "\uFFFD");
  EXPECT_EQ(shown(decode(Ids{begin, tokenizer().special().think_end, end}, thinking())),
            "R[\uFFFD] C[\uFFFD\uFFFD]");
}

TEST(StreamDecoder, RandomRepliesDoNotDependOnTheCuts) {
  static const std::vector<std::string> kAtoms = {"<",
                                                  "</",
                                                  "｜DSML｜",
                                                  "tool_calls",
                                                  "invoke",
                                                  "parameter",
                                                  " name=\"f\"",
                                                  " name=\"x\"",
                                                  " string=\"true\"",
                                                  " string=\"false\"",
                                                  ">",
                                                  ">\n",
                                                  "\n",
                                                  "\n\n",
                                                  "</think>",
                                                  "<think>",
                                                  "a",
                                                  "END",
                                                  "EN",
                                                  "🙂",
                                                  "3",
                                                  "\"",
                                                  "{\"k\": 1}",
                                                  " ",
                                                  "<｜DSML｜tool_calls>\n",
                                                  "<｜DSML｜invoke name=\"f\">\n",
                                                  "<｜DSML｜parameter name=\"y\" string=\"true\">",
                                                  "</｜DSML｜parameter>",
                                                  "</｜DSML｜invoke>",
                                                  "</｜DSML｜tool_calls>",
                                                  kEos};
  Random random(5);
  int n_calls = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::uint64_t n = random.below(30); n > 0; --n) {
      text += kAtoms[random.below(kAtoms.size())];
    }
    StreamOptions options = stopping({}, random.below(2) == 0);
    if (random.below(2) == 0) {
      options.stop = {"END", "\n\na"};
    }
    if (random.below(2) == 0) {
      options.tool_names = {"f"};
    }
    const Ids tokens = byte_tokens(text);
    const Reply whole = decode(tokens, options);
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (random.below(3) == 0) {
        cuts.push_back(i);
      }
    }
    const Reply cut = decode(tokens, options, cuts);
    ASSERT_EQ(shown(whole), shown(cut)) << text;
    ASSERT_EQ(whole.malformed, cut.malformed) << text;
    ASSERT_EQ(whole.tokens_taken, cut.tokens_taken) << text;
    const Ids merged = tokenizer().encode(text, {.allow_added_tokens = true});
    ASSERT_EQ(shown(whole), shown(decode(merged, options))) << text;
    for (const DecodedToolCall& call : whole.message.tool_calls) {
      ASSERT_TRUE(json::parse(call.arguments).ok()) << call.arguments;
      ++n_calls;
    }
  }
  EXPECT_GT(n_calls, 100);
}

}  // namespace
}  // namespace tandem::text
