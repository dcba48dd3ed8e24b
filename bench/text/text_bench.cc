// Tokenizer throughput on one core, in MB of UTF-8 a second, for four kinds of text.
// Usage: text_bench [--smoke] [TOKENIZER_JSON]. Without a file it measures a byte vocabulary with
// no merges to speak of, which shows the scanner more than the merges. Before it times a text it
// checks that decode(encode(text)) is the text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/random.h"
#include "foundation/json/json.h"
#include "model/text/pretokenizer.h"
#include "model/text/tokenizer.h"
#include "model/text/utf8.h"

namespace {

using tandem::Random;
using tandem::TokenId;
using tandem::text::Tokenizer;

struct Sample {
  const char* name;
  std::vector<std::string> atoms;
};

// Words follow a skewed law, as in real text; one in sixteen is new.
const Sample kSamples[] = {
    {"prose", {"the ",    "of ",     "and ",      "in ",      "to ",      "a ",        "is ",
               "that ",   "model ",  "language ", "water, ",  "because ", "through ",  "another. ",
               "people ", "small\n", "don't ",    "capital ", "weather ", "reasoning "}},
    {"code",
     {"  if (x->", "size() ", "== 0) {\n", "    return ", "nullptr;\n", "}\n\n", "std::vector<",
      "int> ", "values", "[i] ", "+= ", "0x1F;\n", "// ", "for (auto& ", "name_", ".push_back(",
      "\"text\");\n"}},
    {"cjk",
     {"你好", "世界", "今天", "天气", "。", "，", "東京", "タワー", "の", "한국어 ", "문장 "}},
    {"numbers", {"12345 ", "3.14159, ", "2026-06-01 ", "0.001\t", "1,000,000\n", "42; "}},
};

std::string make_text(const Sample& sample, std::size_t n_bytes) {
  Random random(n_bytes);
  std::string text;
  text.reserve(n_bytes + 64);
  while (text.size() < n_bytes) {
    if (random.below(16) == 0) {
      for (std::uint64_t n = 2 + random.below(8); n > 0; --n) {
        text += static_cast<char>('a' + random.below(26));
      }
      text += ' ';
      continue;
    }
    const double skew = random.uniform();
    const auto count = static_cast<double>(sample.atoms.size());
    text += sample.atoms[static_cast<std::size_t>(skew * skew * count)];
  }
  return text;
}

tandem::json::Value byte_tokenizer_json() {
  using tandem::json::Object;
  using tandem::json::Value;
  Object vocab;
  std::int64_t next = 0;
  char32_t shifted = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    std::string key;
    tandem::text::append_utf8(key, printable ? byte : shifted++);
    vocab[key] = next++;
  }
  const auto split = [](std::string_view pattern) -> Value {
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}};
  };
  return {{"pre_tokenizer",
           {{"pretokenizers",
             {split(tandem::text::kNumberPattern),
              split(tandem::text::kCjkPattern),
              split(tandem::text::kWordPattern),
              {{"type", "ByteLevel"}, {"use_regex", false}}}}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", tandem::json::Array()}}}};
}

bool measure(const Tokenizer& tokenizer, const Sample& sample, std::size_t n_bytes) {
  const std::string text = make_text(sample, n_bytes);
  std::vector<TokenId> tokens = tokenizer.encode(text);
  if (tokenizer.decode(tokens) != text) {
    std::fprintf(stderr, "text_bench: %s: decode(encode(text)) is not the text\n", sample.name);
    return false;
  }
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    tokens = tokenizer.encode(text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(text.size()) / took.count() / 1e6);
  }
  std::printf("%-8s %9zu bytes %9zu tokens %8.1f MB/s\n", sample.name, text.size(), tokens.size(),
              best);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool smoke = false;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--smoke") {
      smoke = true;
    } else {
      path = argument;
    }
  }
  const tandem::Result<Tokenizer> tokenizer =
      path.empty() ? Tokenizer::parse(tandem::json::dump(byte_tokenizer_json()))
                   : Tokenizer::load(path);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "text_bench: %s\n", tokenizer.status().message().c_str());
    return 1;
  }
  bool good = true;
  for (const Sample& sample : kSamples) {
    good = measure(*tokenizer, sample, smoke ? 20'000 : 8'000'000) && good;
  }
  return good ? 0 : 1;
}
