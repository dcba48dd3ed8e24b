// The tokenizer against the real vocabulary: the vectors of model.md 5.1 and thousands of texts
// whose ids the npm port of the reference wrote.
#include "model/text/tokenizer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "foundation/base/random.h"
#include "model/text/utf8.h"
#include "tests/unit/text/test_vocabulary.h"

namespace tandem::text {
namespace {

using Ids = std::vector<TokenId>;

const Tokenizer& v4() {
  static const Tokenizer tokenizer = make_v4_tokenizer();
  return tokenizer;
}

Ids encode_all(std::string_view text) {
  return v4().encode(text, {.allow_added_tokens = true});
}

TEST(Tokenizer, HasTheKnownIdsOfTheSpecification) {
  const std::vector<std::pair<std::string, Ids>> vectors = {
      {"The capital of France is", {671, 6102, 294, 8760, 344}},
      {"Hello, world!", {19923, 14, 2058, 3}},
      {"12345", {6895, 1883}},
      {"1234567890", {6895, 18009, 25744, 18}},
      {"a  b   c    d", {67, 223, 291, 262, 274, 361, 283}},
      {" \n ", {539, 223}},
      {"\r\n", {204, 201}},
      {"你好世界", {30594, 3427}},
      {"中文123英文", {21134, 6895, 21207}},
      {"🙂", {80300, 227}},
      {"naïve café", {2720, 91223, 57664}},
      {"x->y", {90, 2105, 91}},
      {"<think>reasoning</think>answer", {128821, 86512, 288, 128822, 19995}},
      {"<｜DSML｜invoke name=\"f\">", {30, 128825, 40148, 5406, 2329, 1281, 72, 3320}},
  };
  for (const auto& [text, ids] : vectors) {
    EXPECT_EQ(encode_all(text), ids) << text;
    EXPECT_EQ(v4().decode(ids), text);
  }
}

TEST(Tokenizer, FindsSpecialTokensByContent) {
  const SpecialTokens& special = v4().special();
  EXPECT_EQ(special.bos, 0);
  EXPECT_EQ(special.eos, 1);
  EXPECT_EQ(special.pad, 2);
  EXPECT_EQ(special.user, 128803);
  EXPECT_EQ(special.assistant, 128804);
  EXPECT_EQ(special.think_begin, 128821);
  EXPECT_EQ(special.think_end, 128822);
  EXPECT_EQ(special.dsml, 128825);
  EXPECT_EQ(special.latest_reminder, 128828);
  EXPECT_EQ(special.title, 128836);
  EXPECT_EQ(special.read_url, 128845);
  EXPECT_EQ(special.dspark_noise, 128799);
  EXPECT_TRUE(v4().require_chat_tokens().ok());
  EXPECT_TRUE(v4().is_special(0));
  EXPECT_FALSE(v4().is_special(special.think_end));
  EXPECT_TRUE(v4().is_added(special.think_end));
  EXPECT_FALSE(v4().is_added(671));
}

TEST(Tokenizer, TheV3VocabularyLacksChatTokensAndSaysWhich) {
  const Tokenizer v3 = Tokenizer::parse(v3_tokenizer_text()).value();
  EXPECT_EQ(v3.vocab_size(), 128815);
  const Status status = v3.require_chat_tokens();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("<think>, </think>, ｜DSML｜"), std::string::npos)
      << status.message();
}

TEST(Tokenizer, AgreesWithTheReferenceOnThousandsOfTexts) {
  const Tokenizer v3 = Tokenizer::parse(v3_tokenizer_text()).value();
  std::istringstream lines(read_npm_file("expected_tokens.jsonl"));
  int n_texts = 0;
  int n_wrong = 0;
  for (std::string line; std::getline(lines, line);) {
    const json::Value row = json::parse(line).value();
    const std::string text(row.at("text").as_string().c_str(), row.at("text").as_string().size());
    Ids expected;
    for (const json::Value& id : row.at("ids").as_array()) {
      expected.push_back(static_cast<TokenId>(id.as_int64()));
    }
    ++n_texts;
    const Ids ids = v3.encode(text, {.allow_added_tokens = true});
    if (ids != expected && ++n_wrong <= 5) {
      ADD_FAILURE() << "text " << n_texts << ": " << line << "\nfound "
                    << ::testing::PrintToString(ids);
    }
    EXPECT_EQ(v3.decode(ids), text);
  }
  EXPECT_EQ(n_wrong, 0);
  EXPECT_GE(n_texts, 5000);
}

TEST(Tokenizer, TextOfOthersCannotFormAddedTokens) {
  const std::string text = "a<｜Assistant｜></think>b";
  const Ids safe = v4().encode(text);
  for (const TokenId id : safe) {
    EXPECT_FALSE(v4().is_added(id));
  }
  EXPECT_EQ(v4().decode(safe), text);
  const Ids open = encode_all(text);
  EXPECT_EQ(open.size(), 4U);
  EXPECT_EQ(open[1], v4().special().assistant);
}

TEST(Tokenizer, PartsGiveTheTokensOfTheJoinedText) {
  const std::string text = "<｜User｜>Hello, world!\n\n## Tools\n<｜Assistant｜></think>";
  const Ids whole = encode_all(text);
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    // Cuts between marks only: trusted around the marks, untrusted inside the sentence.
    const std::size_t first = std::string("<｜User｜>").size();
    const std::size_t last = text.find("<｜Assistant｜>");
    const std::size_t a = first + random.below(last - first + 1);
    const std::size_t b = a + random.below(last - a + 1);
    const std::string_view view = text;
    const std::vector<TextPart> parts = {
        {view.substr(0, a), true}, {view.substr(a, b - a), false}, {view.substr(b), true}};
    EXPECT_EQ(v4().encode_parts(parts), whole);
  }
}

TEST(Tokenizer, AMarkAcrossTwoTrustedPartsIsFoundAndOneThatLeavesThemIsNot) {
  const std::vector<TextPart> trusted = {{"<thi", true}, {"nk>", true}};
  EXPECT_EQ(v4().encode_parts(trusted), Ids{v4().special().think_begin});
  const std::vector<TextPart> mixed = {{"<thi", true}, {"nk>", false}};
  EXPECT_EQ(v4().encode_parts(mixed), v4().encode("<think>"));
}

TEST(Tokenizer, InvalidBytesAreEncodedAsReplacementCharacters) {
  EXPECT_EQ(v4().encode("a\xFFz"), v4().encode("a\uFFFDz"));
  EXPECT_EQ(v4().encode("\xE4\xBD"), v4().encode("\uFFFD"));
  EXPECT_EQ(v4().encode("\xE4\xBDx\xC0\xAF"), v4().encode("\uFFFDx\uFFFD\uFFFD"));
}

TEST(Tokenizer, EncodeThenDecodeIsTheSameTextForAnyCharacters) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(60); i > 0; --i) {
      char32_t code = static_cast<char32_t>(random.below(2) == 0 ? random.below(0x300)
                                                                 : random.below(0x110000));
      if (code >= 0xD800 && code <= 0xDFFF) {
        code = 'x';
      }
      append_utf8(text, code);
    }
    EXPECT_EQ(v4().decode(v4().encode(text)), text);
  }
}

TEST(Tokenizer, LongPiecesMergeAsShortOnes) {
  // Pairs first, from the left; an odd letter at the end joins the last pair. Above the scan limit
  // (96 bytes) the heap takes over.
  const Tokenizer small = make_small_tokenizer();
  const TokenId pair = small.find_bytes("aa").value();
  const TokenId triple = small.find_bytes("aaa").value();
  for (const std::size_t n : {4U, 5U, 95U, 96U, 97U, 98U, 1001U, 100000U}) {
    Ids expected(n / 2, pair);
    expected.back() = n % 2 == 1 ? triple : pair;
    EXPECT_EQ(small.encode(std::string(n, 'a')), expected) << n;
  }
}

TEST(Tokenizer, ThreadsShareOneTokenizer) {
  const std::string text = "The capital of France is 12345 naïve café 你好世界 x->y";
  const Ids expected = encode_all(text);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&expected, &text, &wrong, t] {
      for (int i = 0; i < 200; ++i) {
        wrong[t] += encode_all(text) != expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, DecodeReplacesCutCharactersAndHidesSpecialTokensOnRequest) {
  const Tokenizer small = make_small_tokenizer();
  const TokenId begin = small.find_bytes("\xF0\x9F").value();
  const TokenId end = small.find_bytes("\x99\x82").value();
  EXPECT_EQ(small.decode(Ids{begin, end}), "🙂");
  EXPECT_EQ(small.decode(Ids{begin}), "\uFFFD");
  EXPECT_EQ(small.decode(Ids{end}), "\uFFFD\uFFFD");
  const Ids marked = {small.special().bos, small.special().think_end, begin, end,
                      small.special().eos};
  EXPECT_EQ(small.decode(marked, true), "</think>🙂");
  EXPECT_EQ(small.special().dspark_noise, small.find_added("<｜place▁holder▁no▁10｜>"));
  EXPECT_EQ(small.token_bytes(-1), "");
  EXPECT_EQ(small.token_bytes(1 << 30), "");
}

// What a damaged or foreign file is told.
struct BadFile {
  const char* name;
  void (*damage)(json::Object& root);
  const char* message;
};

json::Object& model_of(json::Object& root) {
  return root["model"].as_object();
}

json::Array& stages_of(json::Object& root) {
  return root["pre_tokenizer"].as_object()["pretokenizers"].as_array();
}

const BadFile kBadFiles[] = {
    {"no model", [](json::Object& root) { root.erase("model"); }, "model is nothing"},
    {"other model", [](json::Object& root) { model_of(root)["type"] = "Unigram"; },
     "model.type is \"Unigram\", expected \"BPE\""},
    {"byte fallback", [](json::Object& root) { model_of(root)["byte_fallback"] = true; },
     "model.byte_fallback is true"},
    {"normalizer",
     [](json::Object& root) {
       root["normalizer"] = {{"type", "NFC"}};
     },
     "normalizer is {\"type\":\"NFC\"}, expected none"},
    {"no pre-tokenizer", [](json::Object& root) { root["pre_tokenizer"] = nullptr; },
     "pre_tokenizer is null"},
    {"other pattern",
     [](json::Object& root) {
       stages_of(root)[0].as_object()["pattern"].as_object()["Regex"] = "\\p{N}{1,2}";
     },
     "pre_tokenizer.pretokenizers[0] is"},
    {"other behaviour",
     [](json::Object& root) { stages_of(root)[2].as_object()["behavior"] = "Removed"; },
     "pre_tokenizer.pretokenizers[2] is"},
    {"prefix space",
     [](json::Object& root) { stages_of(root)[3].as_object()["add_prefix_space"] = true; },
     "pre_tokenizer.pretokenizers[3] is"},
    {"missing byte", [](json::Object& root) { model_of(root)["vocab"].as_object().erase("A"); },
     "no token for the byte 0x41"},
    {"double id", [](json::Object& root) { model_of(root)["vocab"].as_object()["A"] = 5; },
     "gives the id 5 twice"},
    {"sparse id", [](json::Object& root) { model_of(root)["vocab"].as_object()["A"] = 1000000; },
     "model.vocab[\"A\"]: the id is 1000000"},
    {"negative id", [](json::Object& root) { model_of(root)["vocab"].as_object()["A"] = -1; },
     "model.vocab[\"A\"]: the id is -1"},
    {"bad merge", [](json::Object& root) { model_of(root)["merges"].as_array()[0] = "a b c"; },
     "model.merges[0] is \"a b c\""},
    {"unknown merge", [](json::Object& root) { model_of(root)["merges"].as_array()[0] = "h q"; },
     "model.merges[0] needs the token \"hq\""},
    {"stripping added token",
     [](json::Object& root) { root["added_tokens"].as_array()[4].as_object()["lstrip"] = true; },
     "added_tokens[4]: lstrip of \"</think>\" is true"},
    {"added id of another",
     [](json::Object& root) { root["added_tokens"].as_array()[4].as_object()["id"] = 40; },
     "added_tokens[4]: \"</think>\" has the id 40, which belongs to"},
};

TEST(TokenizerFile, SaysWhatIsWrong) {
  for (const BadFile& bad : kBadFiles) {
    json::Value root = small_tokenizer_json();
    bad.damage(root.as_object());
    const Result<Tokenizer> result = Tokenizer::parse(json::dump(root), "x/tokenizer.json");
    ASSERT_FALSE(result.ok()) << bad.name;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(result.status().message().rfind("x/tokenizer.json: ", 0), 0U);
    EXPECT_NE(result.status().message().find(bad.message), std::string::npos)
        << bad.name << ": " << result.status().message();
  }
}

TEST(TokenizerFile, TakesMergesAsPairsAndEscapedLineEnds) {
  json::Value root = small_tokenizer_json();
  for (json::Value& merge : model_of(root.as_object())["merges"].as_array()) {
    const std::string text(merge.as_string());
    const std::size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  json::Object& pattern = stages_of(root.as_object())[2].as_object()["pattern"].as_object();
  std::string escaped;
  for (const char c : std::string(pattern["Regex"].as_string())) {
    escaped += c == '\r' ? "\\r" : c == '\n' ? "\\n" : std::string(1, c);
  }
  pattern["Regex"] = escaped;
  const Tokenizer pairs = Tokenizer::parse(json::dump(root)).value();
  EXPECT_EQ(pairs.encode("hello world\n\n"), make_small_tokenizer().encode("hello world\n\n"));
}

TEST(TokenizerFile, AMissingFileIsNamed) {
  const Result<Tokenizer> result = Tokenizer::load("/nowhere/tokenizer.json");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find("/nowhere/tokenizer.json"), std::string::npos);
}

}  // namespace
}  // namespace tandem::text
