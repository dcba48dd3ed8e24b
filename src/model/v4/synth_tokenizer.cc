// The minimal tokenizer of synthetic checkpoints. SOURCE: model.md 5.1, 5.2.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/json/json.h"
#include "model/v4/synth.h"

namespace tandem::v4 {
namespace {

constexpr std::int32_t kFlashVocab = 129280;
constexpr std::int32_t kFirstByte = 3;      // after BOS, EOS and pad
constexpr std::int32_t kFirstPacked = 259;  // after the bytes
constexpr std::int32_t kPlaceHolders = 800;

constexpr std::string_view kNumberPattern = R"(\p{N}{1,3})";
constexpr std::string_view kCjkPattern = "[一-龥\u3040-ゟ゠-ヿ]+";
constexpr std::string_view kWordPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Special {
  std::int32_t flash_id;
  std::string_view content;
};

constexpr Special kSpecials[] = {
    {128800, "<｜fim▁hole｜>"},
    {128801, "<｜fim▁begin｜>"},
    {128802, "<｜fim▁end｜>"},
    {128803, "<｜User｜>"},
    {128804, "<｜Assistant｜>"},
    {128805, "<|EOT|>"},
    {128806, "<｜tool▁calls▁begin｜>"},
    {128807, "<｜tool▁calls▁end｜>"},
    {128808, "<｜tool▁call▁begin｜>"},
    {128809, "<｜tool▁call▁end｜>"},
    {128810, "<｜tool▁outputs▁begin｜>"},
    {128811, "<｜tool▁outputs▁end｜>"},
    {128812, "<｜tool▁output▁begin｜>"},
    {128813, "<｜tool▁output▁end｜>"},
    {128814, "<｜tool▁sep｜>"},
    {128821, "<think>"},
    {128822, "</think>"},
    {128825, "｜DSML｜"},
    {128826, "<｜begin▁sys｜>"},
    {128827, "<｜end▁sys｜>"},
    {128828, "<｜latest_reminder｜>"},
    {128829, "<｜action｜>"},
    {128830, "<｜query｜>"},
    {128831, "<｜authority｜>"},
    {128832, "<｜domain｜>"},
    {128833, "<｜task｜>"},
    {128834, "<｜political｜>"},
    {128835, "<｜entity｜>"},
    {128836, "<｜title｜>"},
    {128837, "<｜safety｜>"},
    {128838, "<｜answer｜>"},
    {128839, "<｜search｜>"},
    {128842, "<｜search▁begin｜>"},
    {128843, "<｜search▁end｜>"},
    {128844, "<｜extracted_url｜>"},
    {128845, "<｜read_url｜>"},
    {128846, "<｜end▁of▁query｜>"},
    {129279, "<｜image｜>"},
};

// The character that stands for a byte: printable bytes for themselves, the others from U+0100 on.
std::string byte_character(int byte, int& next_other) {
  const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                         (byte >= 0xAE && byte <= 0xFF);
  const int code = printable ? byte : next_other++;
  if (code < 0x80) {
    return std::string(1, static_cast<char>(code));
  }
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

std::vector<std::pair<std::int32_t, std::string>> added_tokens(bool flash) {
  std::vector<std::pair<std::int32_t, std::string>> tokens = {
      {0, "<｜begin▁of▁sentence｜>"}, {1, "<｜end▁of▁sentence｜>"}, {2, "<｜▁pad▁｜>"}};
  const std::int32_t n_holders = flash ? kPlaceHolders : 1;
  const std::int32_t first = flash ? 128000 : kFirstPacked;
  for (std::int32_t i = 0; i < n_holders; ++i) {
    tokens.emplace_back(first + i, fmt::format("<｜place▁holder▁no▁{}｜>", i));
  }
  std::int32_t packed = first + n_holders;
  for (const Special& special : kSpecials) {
    tokens.emplace_back(flash ? special.flash_id : packed++, std::string(special.content));
  }
  return tokens;
}

// A word that only this id has: a random model samples any id, and all of them should show as text.
std::string filler_word(std::int32_t id) {
  std::string word = "\u0120";  // a space
  for (std::int32_t rest = id, i = 0; i < 4; ++i, rest /= 26) {
    word += static_cast<char>('a' + rest % 26);
  }
  return word;
}

// One token per byte, then words for all ids that no special token takes.
json::Object vocabulary(const std::vector<std::pair<std::int32_t, std::string>>& added,
                        std::int32_t vocab_size) {
  std::vector<bool> taken(static_cast<std::size_t>(vocab_size), false);
  for (const auto& token : added) {
    taken[static_cast<std::size_t>(token.first)] = true;
  }
  json::Object words;
  int next_other = 256;
  for (int byte = 0; byte < 256; ++byte) {
    words[byte_character(byte, next_other)] = kFirstByte + byte;
  }
  for (std::int32_t id = kFirstByte + 256; id < vocab_size; ++id) {
    if (!taken[static_cast<std::size_t>(id)]) {
      words[filler_word(id)] = id;
    }
  }
  return words;
}

json::Object split(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", json::Object{{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json::Object byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

}  // namespace

Result<std::string> minimal_tokenizer_json(std::int32_t vocab_size) {
  const auto tokens = added_tokens(vocab_size >= kFlashVocab);
  const std::int32_t needed = std::max_element(tokens.begin(), tokens.end())->first + 1;
  if (vocab_size < needed) {
    return invalid_argument("vocab_size is {}, the byte-level tokenizer needs at least {}",
                            vocab_size, needed);
  }
  json::Array added;
  for (const auto& [id, content] : tokens) {
    added.push_back(json::Object{{"id", id},
                                 {"content", content},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", id < kFirstByte}});
  }
  json::Object root;
  root["version"] = "1.0";
  root["truncation"] = nullptr;
  root["padding"] = nullptr;
  root["added_tokens"] = std::move(added);
  root["normalizer"] = json::Object{{"type", "Sequence"}, {"normalizers", json::Array{}}};
  root["pre_tokenizer"] =
      json::Object{{"type", "Sequence"},
                   {"pretokenizers", json::Array{split(kNumberPattern), split(kCjkPattern),
                                                 split(kWordPattern), byte_level(false)}}};
  root["post_processor"] = byte_level(true);
  root["decoder"] = byte_level(true);
  root["model"] = json::Object{{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", false},
                               {"vocab", vocabulary(tokens, vocab_size)},
                               {"merges", json::Array{}}};
  return json::dump(root);
}

}  // namespace tandem::v4
