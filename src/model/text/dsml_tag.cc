#include "model/text/dsml_tag.h"

namespace tandem::text {
namespace {

constexpr std::size_t kMaxTagBytes = 4096;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string spell_marks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == kDsmlMark) {
      out += "｜DSML｜";
    } else if (c == kThinkEndMark) {
      out += "</think>";
    } else if (c == kThinkBeginMark) {
      out += "<think>";
    } else {
      out += c;
    }
  }
  return out;
}

void DsmlTagLexer::reset() {
  *this = DsmlTagLexer();
}

DsmlTagLexer::State DsmlTagLexer::feed(char c) {
  raw_ += c;
  if (raw_.size() > kMaxTagBytes) {
    return State::kBad;
  }
  return step(c);
}

DsmlTagLexer::State DsmlTagLexer::step(char c) {
  if (is_mark(c) && (c != kDsmlMark || (phase_ != Phase::kSlashOrMark && phase_ != Phase::kMark))) {
    return State::kBad;
  }
  switch (phase_) {
    case Phase::kStart:
      phase_ = Phase::kSlashOrMark;
      return c == '<' ? State::kMore : State::kBad;
    case Phase::kSlashOrMark:
      closing_ = c == '/';
      phase_ = closing_ ? Phase::kMark : Phase::kName;
      return closing_ || c == kDsmlMark ? State::kMore : State::kBad;
    case Phase::kMark:
      phase_ = Phase::kName;
      return c == kDsmlMark ? State::kMore : State::kBad;
    case Phase::kName:
      if (is_name_char(c)) {
        name_ += c;
        return State::kMore;
      }
      if (name_.empty()) {
        return State::kBad;
      }
      phase_ = Phase::kBetween;
      [[fallthrough]];
    case Phase::kBetween:
      if (c == '>') {
        return State::kDone;
      }
      if (is_blank(c)) {
        return State::kMore;
      }
      key_ = c;
      phase_ = Phase::kKey;
      return is_name_char(c) ? State::kMore : State::kBad;
    case Phase::kKey:
      if (is_name_char(c)) {
        key_ += c;
        return State::kMore;
      }
      phase_ = Phase::kQuote;
      return c == '=' ? State::kMore : State::kBad;
    case Phase::kQuote:
      phase_ = Phase::kValue;
      value_.clear();
      return c == '"' ? State::kMore : State::kBad;
    case Phase::kValue:
      if (c == '"') {
        attributes_.emplace(key_, value_);
        phase_ = Phase::kBetween;
      } else {
        value_ += c;
      }
      return State::kMore;
  }
  return State::kBad;
}

const std::string* DsmlTagLexer::attribute(const std::string& key) const {
  const auto found = attributes_.find(key);
  return found == attributes_.end() ? nullptr : &found->second;
}

}  // namespace tandem::text
