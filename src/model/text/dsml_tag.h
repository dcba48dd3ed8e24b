// DSML tags, read character by character: <｜DSML｜NAME key="value" ...> and </｜DSML｜NAME>.
// The tokens that stand for marks travel as single bytes that no UTF-8 text contains, so that a
// mark is known by its token and never by its spelling (model.md T40).
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace tandem::text {

inline constexpr char kDsmlMark = '\xFF';
inline constexpr char kThinkEndMark = '\xFE';
inline constexpr char kThinkBeginMark = '\xFD';

// The text with marks spelled out.
std::string spell_marks(std::string_view text);

inline bool is_mark(char c) {
  return c == kDsmlMark || c == kThinkEndMark || c == kThinkBeginMark;
}

// Space, tab, CR, LF.
inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

class DsmlTagLexer {
 public:
  enum class State { kMore, kDone, kBad };

  // Forgets what was read.
  void reset();

  // Takes the next character; the first one must be '<'. After kBad or kDone: reset.
  State feed(char c);

  // Everything read since reset.
  const std::string& raw() const { return raw_; }

  bool empty() const { return raw_.empty(); }

  bool closing() const { return closing_; }

  // The name read until now.
  const std::string& name() const { return name_; }

  // The attribute's value, or nullptr.
  const std::string* attribute(const std::string& key) const;

 private:
  enum class Phase { kStart, kSlashOrMark, kMark, kName, kBetween, kKey, kQuote, kValue };

  State step(char c);

  Phase phase_ = Phase::kStart;
  bool closing_ = false;
  std::string raw_;
  std::string name_;
  std::string key_;
  std::string value_;
  std::map<std::string, std::string> attributes_;
};

}  // namespace tandem::text
