// Prompts of a benchmark: unique, of a stated length, by class of content. The class decides how
// many drafted tokens a speculating server accepts, so figures of different classes do not compare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::bench {

enum class ContentClass {
  kProse,
  kCode,
  kJson,
  kChat,
  kCounting,
  kWordList,  // a list of numbered words after one repeated phrase: drafts are nearly all accepted
};

std::string_view content_name(ContentClass content);
std::optional<ContentClass> parse_content(std::string_view name);
std::vector<ContentClass> all_contents();

// A prompt that no cache has seen: its first words depend on `seed`. Exactly `words` words (runs of
// other characters than blanks) of filler of the same kind come before the request. The same
// arguments give the same text.
std::string make_prompt(ContentClass content, std::uint64_t seed, std::int64_t words);

}  // namespace tandem::bench
