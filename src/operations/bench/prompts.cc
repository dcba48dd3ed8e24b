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

std::string prose(Random& random, std::int64_t words) {
  std::string out;
  for (std::int64_t i = 0; i < words; i += 8) {
    out += fmt::format("The {} near the {} found a {} in the {}. ", word(random), word(random),
                       word(random), word(random));
  }
  return out;
}

std::string code(Random& random, std::int64_t words) {
  std::string out;
  for (std::int64_t i = 0; i < words; i += 12) {
    out += fmt::format("int {}_{}(int {}) {{\n  return {} * {} + {};\n}}\n", word(random),
                       word(random), "x", "x", random.below(100), random.below(1000));
  }
  return out;
}

std::string records(Random& random, std::int64_t words) {
  std::string out;
  for (std::int64_t i = 0; i < words; i += 8) {
    out += fmt::format("{{\"id\": {}, \"name\": \"{}\", \"place\": \"{}\"}}\n",
                       random.below(100'000), word(random), word(random));
  }
  return out;
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
  return {ContentClass::kProse, ContentClass::kCode, ContentClass::kJson, ContentClass::kChat,
          ContentClass::kCounting};
}

std::string make_prompt(ContentClass content, std::uint64_t seed, std::int64_t words) {
  Random random(seed);
  std::string out = fmt::format("Note {:016x}.\n", random.next());
  switch (content) {
    case ContentClass::kCode:
      out += code(random, words);
      break;
    case ContentClass::kJson:
      out += records(random, words);
      break;
    default:
      out += prose(random, words);
  }
  return out + "\n" + request(content, random);
}

}  // namespace tandem::bench
