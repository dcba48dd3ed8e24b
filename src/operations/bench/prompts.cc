#include "operations/bench/prompts.h"

#include <fmt/format.h>

#include <array>

#include "foundation/base/random.h"

namespace tandem::bench {
namespace {

constexpr std::array<std::string_view, 48> kWords = {
    "river",   "market",  "engine",  "window", "letter", "garden",  "captain", "silver",
    "morning", "bridge",  "winter",  "signal", "copper", "island",  "teacher", "forest",
    "number",  "valley",  "paper",   "harbor", "summer", "anchor",  "kitchen", "ladder",
    "castle",  "village", "candle",  "planet", "basket", "thunder", "meadow",  "rocket",
    "butter",  "magnet",  "lantern", "piano",  "needle", "pocket",  "orchard", "saddle",
    "temple",  "velvet",  "walnut",  "zebra",  "cactus", "desert",  "feather", "glacier"};

std::string_view word(Random& random) {
  return kWords[random.below(kWords.size())];
}

std::string prose(Random& random) {
  return fmt::format("The {} near the {} found a {} in the {}. ", word(random), word(random),
                     word(random), word(random));
}

std::string code(Random& random) {
  return fmt::format("int {}_{}(int x) {{\n  return x * {} + {};\n}}\n", word(random), word(random),
                     random.below(100), random.below(1000));
}

std::string record(Random& random) {
  return fmt::format("{{\"id\": {}, \"name\": \"{}\", \"place\": \"{}\"}}\n", random.below(100'000),
                     word(random), word(random));
}

std::string sentence(ContentClass content, Random& random) {
  switch (content) {
    case ContentClass::kCode:
      return code(random);
    case ContentClass::kJson:
      return record(random);
    case ContentClass::kWordList:
      return "This line only fills the context of the request. ";
    default:
      return prose(random);
  }
}

bool is_blank(char c) {
  return c == ' ' || c == '\n';
}

// Exactly `words` words: whole sentences, the last one cut.
std::string filler(ContentClass content, Random& random, std::int64_t words) {
  std::string out;
  std::int64_t count = 0;
  bool inside = false;
  while (true) {
    const std::string next = sentence(content, random);
    for (std::size_t i = 0; i < next.size(); ++i) {
      const bool starts = !is_blank(next[i]) && !inside;
      if (starts && count == words) {
        return out + next.substr(0, i);
      }
      count += starts ? 1 : 0;
      inside = !is_blank(next[i]);
    }
    out += next;
  }
}

std::string request(ContentClass content, Random& random) {
  switch (content) {
    case ContentClass::kProse:
      return fmt::format("Write a long story about a {} and a {}.", word(random), word(random));
    case ContentClass::kCode:
      return fmt::format("Write a C++ class {}_{} with ten methods and comments.", word(random),
                         word(random));
    case ContentClass::kJson:
      return fmt::format("Write a JSON array of 40 objects with id, name and {}.", word(random));
    case ContentClass::kChat:
      return fmt::format("What would you tell a friend who lost a {} at the {}? Explain in detail.",
                         word(random), word(random));
    case ContentClass::kCounting:
      return fmt::format("Count from {} upwards, one number a line.", 1 + random.below(500));
    case ContentClass::kWordList:
      return "Write a list of 128 numbered English words, one a line.";
  }
  return {};
}

}  // namespace

std::string_view content_name(ContentClass content) {
  switch (content) {
    case ContentClass::kProse:
      return "prose";
    case ContentClass::kCode:
      return "code";
    case ContentClass::kJson:
      return "json";
    case ContentClass::kChat:
      return "chat";
    case ContentClass::kCounting:
      return "counting";
    case ContentClass::kWordList:
      return "wordlist";
  }
  return "";
}

std::optional<ContentClass> parse_content(std::string_view name) {
  for (const ContentClass content : all_contents()) {
    if (content_name(content) == name) {
      return content;
    }
  }
  return std::nullopt;
}

std::vector<ContentClass> all_contents() {
  return {ContentClass::kProse, ContentClass::kCode,     ContentClass::kJson,
          ContentClass::kChat,  ContentClass::kCounting, ContentClass::kWordList};
}

std::string make_prompt(ContentClass content, std::uint64_t seed, std::int64_t words) {
  Random random(seed);
  std::string out = fmt::format("Note {:016x}.\n", random.next());
  out += filler(content, random, words);
  return out + "\n" + request(content, random);
}

}  // namespace tandem::bench
