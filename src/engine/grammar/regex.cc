#include "engine/grammar/regex.h"

#include <algorithm>
#include <string>

namespace tandem::grammar {
namespace {

constexpr std::uint32_t kMaxCodePoint = 0x10FFFF;
constexpr int kMaxRepeat = 5000;
constexpr int kMaxNesting = 200;
constexpr std::size_t kMaxNfaNodes = 100000;

enum class Kind { kEmpty, kSet, kCat, kAlt, kRepeat, kBegin, kEnd, kLook };

struct Ast {
  Kind kind = Kind::kEmpty;
  CodePoints set;             // kSet
  std::vector<Ast> children;  // kCat, kAlt; one for kRepeat, kLook
  int min = 0;
  int max = -1;           // kRepeat; -1 = no limit
  bool negative = false;  // kLook
};

Ast make(Kind kind) {
  Ast ast;
  ast.kind = kind;
  return ast;
}

Ast make_set(CodePoints set) {
  Ast ast = make(Kind::kSet);
  ast.set = std::move(set);
  return ast;
}

const CodePoints kDigits = {{'0', '9'}};
const CodePoints kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePoints kSpace = {{9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680},
                           {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                           {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CodePoints kNewlines = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Ast> parse() {
    Ast ast = alternatives();
    if (error_.empty() && pos_ < text_.size()) {
      fail("unmatched ')'");
    }
    if (!error_.empty()) {
      return invalid_argument("pattern '{}': {} at byte {}", text_, error_, pos_);
    }
    return ast;
  }

 private:
  void fail(std::string message) {
    if (error_.empty()) {
      error_ = std::move(message);
    }
  }

  bool at_end() const { return pos_ >= text_.size() || !error_.empty(); }

  bool peek(char c) const { return pos_ < text_.size() && text_[pos_] == c; }

  bool take(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) {
      return false;
    }
    pos_ += word.size();
    return true;
  }

  std::uint32_t code_point() {
    const auto byte = [&](std::size_t i) {
      return pos_ + i < text_.size() ? static_cast<std::uint8_t>(text_[pos_ + i]) : 0U;
    };
    const std::uint32_t lead = byte(0);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t value = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
      value = (value << 6) | (byte(i) & 0x3FU);
    }
    pos_ = std::min(pos_ + size, text_.size());
    return value;
  }

  Ast alternatives() {
    if (++depth_ > kMaxNesting) {
      fail("groups nested too deeply");
    }
    Ast alt = make(Kind::kAlt);
    do {
      Ast cat = make(Kind::kCat);
      while (!at_end() && !peek('|') && !peek(')')) {
        cat.children.push_back(quantified());
      }
      alt.children.push_back(std::move(cat));
    } while (error_.empty() && take("|"));
    --depth_;
    return alt.children.size() == 1 ? std::move(alt.children[0]) : alt;
  }

  Ast quantified() {
    Ast item = atom();
    while (!at_end()) {
      int min = 0;
      int max = -1;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (!peek('{') || !bounds(&min, &max)) {
        break;
      }
      take("?");  // laziness does not change which texts match
      if (item.kind == Kind::kLook || item.kind == Kind::kBegin || item.kind == Kind::kEnd) {
        fail("a repeated assertion");
      }
      if (min > kMaxRepeat || max > kMaxRepeat) {
        fail("a repeat count over " + std::to_string(kMaxRepeat));
      }
      if (max >= 0 && max < min) {
        fail("numbers out of order in {}");
      }
      Ast repeat = make(Kind::kRepeat);
      repeat.min = min;
      repeat.max = max;
      repeat.children.push_back(std::move(item));
      item = std::move(repeat);
    }
    return item;
  }

  // "{m}", "{m,}" or "{m,n}"; anything else is a literal brace.
  bool bounds(int* min, int* max) {
    const std::size_t start = pos_;
    ++pos_;
    const auto number = [&](int* out) {
      const std::size_t first = pos_;
      long value = 0;
      while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
        value = std::min(value * 10 + (text_[pos_] - '0'), 100000000L);
        ++pos_;
      }
      *out = static_cast<int>(value);
      return pos_ > first;
    };
    bool ok = number(min);
    *max = *min;
    if (ok && take(",")) {
      if (peek('}')) {
        *max = -1;
      } else {
        ok = number(max);
      }
    }
    if (!ok || !take("}")) {
      pos_ = start;
      return false;
    }
    return true;
  }

  Ast atom() {
    if (take("(")) {
      return group();
    }
    if (take("[")) {
      return make_set(char_class());
    }
    if (take(".")) {
      return make_set(normalised(kNewlines, true));
    }
    if (take("^")) {
      return make(Kind::kBegin);
    }
    if (take("$")) {
      return make(Kind::kEnd);
    }
    if (take("\\")) {
      return make_set(escape(false));
    }
    if (peek('*') || peek('+') || peek('?')) {
      fail("nothing to repeat");
      return {};
    }
    const std::uint32_t c = code_point();
    return make_set({{c, c}});
  }

  Ast group() {
    Ast look = make(Kind::kLook);
    bool is_look = false;
    if (take("?=") || take("?!")) {
      is_look = true;
      look.negative = text_[pos_ - 1] == '!';
    } else if (take("?<=") || take("?<!")) {
      fail("lookbehind is not supported");
    } else if (take("?<")) {
      while (!at_end() && !take(">")) {
        ++pos_;
      }
    } else if (!take("?:") && peek('?')) {
      fail("an unknown group");
    }
    Ast inside = alternatives();
    if (!take(")")) {
      fail("a missing ')'");
    }
    if (!is_look) {
      return inside;
    }
    look.children.push_back(std::move(inside));
    return look;
  }

  bool hex(int digits, std::uint32_t* out) {
    *out = 0;
    for (int i = 0; i < digits; ++i, ++pos_) {
      const char c = pos_ < text_.size() ? text_[pos_] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        fail("a bad hexadecimal escape");
        return false;
      }
      *out = *out * 16 + static_cast<std::uint32_t>(digit);
    }
    return true;
  }

  std::uint32_t unicode_escape() {
    std::uint32_t value = 0;
    if (take("{")) {
      const std::size_t close = text_.find('}', pos_);
      const std::size_t digits = close == std::string_view::npos ? 0 : close - pos_;
      if (digits < 1 || digits > 6) {
        fail("a bad \\u{...} escape");
        return 0;
      }
      hex(static_cast<int>(digits), &value);
      take("}");
      return std::min(value, kMaxCodePoint);
    }
    hex(4, &value);
    if (value >= 0xD800 && value < 0xDC00 && take("\\u")) {
      std::uint32_t low = 0;
      hex(4, &low);
      value = 0x10000 + ((value - 0xD800) << 10) + ((low - 0xDC00) & 0x3FF);
    }
    return value;
  }

  CodePoints escape(bool in_class) {
    if (pos_ >= text_.size()) {
      fail("a trailing backslash");
      return {};
    }
    const std::uint32_t c = code_point();
    std::uint32_t value = c;
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return normalised(kDigits, true);
      case 'w':
        return kWord;
      case 'W':
        return normalised(kWord, true);
      case 's':
        return kSpace;
      case 'S':
        return normalised(kSpace, true);
      case 't':
        return {{'\t', '\t'}};
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case '0':
        return {{0, 0}};
      case 'x':
        hex(2, &value);
        return {{value, value}};
      case 'u':
        value = unicode_escape();
        return {{value, value}};
      case 'c':
        value = code_point() & 31;
        return {{value, value}};
      case 'b':
        if (in_class) {
          return {{8, 8}};
        }
        break;
      default:
        break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')) {
      fail(std::string("the escape \\") + static_cast<char>(c) + " is not supported");
    }
    return {{c, c}};
  }

  CodePoints char_class() {
    const bool negate = take("^");
    CodePoints out;
    while (!at_end() && !peek(']')) {
      CodePoints item = class_item();
      if (item.size() == 1 && item[0].first == item[0].second && peek('-') &&
          text_.substr(pos_, 2) != "-]") {
        const std::size_t dash = pos_;
        ++pos_;
        const CodePoints last = class_item();
        if (last.size() == 1 && last[0].first == last[0].second) {
          if (last[0].first < item[0].first) {
            fail("a range out of order in a character class");
          }
          item[0].second = last[0].first;
        } else {
          pos_ = dash;
        }
      }
      out.insert(out.end(), item.begin(), item.end());
    }
    if (!take("]")) {
      fail("a missing ']'");
    }
    return normalised(std::move(out), negate);
  }

  CodePoints class_item() {
    if (take("\\")) {
      return escape(true);
    }
    const std::uint32_t c = code_point();
    return {{c, c}};
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  int depth_ = 0;
  std::string error_;
};

class Builder {
 public:
  explicit Builder(Nfa* nfa) : nfa_(nfa) {}

  bool too_large() const { return nfa_->nodes.size() > kMaxNfaNodes; }

  bool unsupported_look() const { return unsupported_look_; }

  // Adds `ast` between `from` and a node that it returns.
  std::uint32_t add(const Ast& ast, std::uint32_t from) {
    if (too_large()) {
      return from;
    }
    switch (ast.kind) {
      case Kind::kEmpty:
        return from;
      case Kind::kSet: {
        const std::uint32_t to = nfa_->add_node();
        for (const auto& [lo, hi] : ast.set) {
          nfa_->add_code_points(from, lo, hi, to);
        }
        return to;
      }
      case Kind::kCat: {
        for (const Ast& child : ast.children) {
          from = add(child, from);
        }
        return from;
      }
      case Kind::kAlt: {
        const std::uint32_t to = nfa_->add_node();
        for (const Ast& child : ast.children) {
          const std::uint32_t begin = nfa_->add_node();
          nfa_->add_empty(from, begin);
          nfa_->add_empty(add(child, begin), to);
        }
        return to;
      }
      case Kind::kRepeat:
        return repeat(ast, from);
      case Kind::kBegin:
      case Kind::kEnd: {
        const std::uint32_t to = nfa_->add_node();
        nfa_->add_empty(from, to,
                        ast.kind == Kind::kBegin ? Nfa::When::kAtBegin : Nfa::When::kAtEnd);
        return to;
      }
      case Kind::kLook:
        unsupported_look_ = true;
        return from;
    }
    return from;
  }

 private:
  std::uint32_t repeat(const Ast& ast, std::uint32_t from) {
    for (int i = 0; i < ast.min; ++i) {
      from = add(ast.children[0], from);
    }
    if (ast.max < 0) {
      const std::uint32_t loop = nfa_->add_node();
      nfa_->add_empty(from, loop);
      nfa_->add_empty(add(ast.children[0], loop), loop);
      const std::uint32_t out = nfa_->add_node();
      nfa_->add_empty(loop, out);
      return out;
    }
    const std::uint32_t out = nfa_->add_node();
    for (int i = ast.min; i < ast.max && !too_large(); ++i) {
      nfa_->add_empty(from, out);
      const std::uint32_t next = nfa_->add_node();
      nfa_->add_empty(from, next);
      from = add(ast.children[0], next);
    }
    nfa_->add_empty(from, out);
    return out;
  }

  Nfa* nfa_;
  bool unsupported_look_ = false;
};

Result<Dfa> to_dfa(const Ast& ast, RegexMatch match, std::string_view pattern) {
  Nfa nfa;
  nfa.start = nfa.add_node();
  Builder builder(&nfa);
  std::uint32_t from = nfa.start;
  if (match == RegexMatch::kSearch) {
    nfa.add_code_points(from, 0, kMaxCodePoint, from);
    from = nfa.add_node();
    nfa.add_empty(nfa.start, from);
  }
  const std::uint32_t matched = builder.add(ast, from);
  nfa.accept = matched;
  if (match == RegexMatch::kSearch) {
    nfa.accept = nfa.add_node();
    nfa.add_empty(matched, nfa.accept);
    nfa.add_code_points(nfa.accept, 0, kMaxCodePoint, nfa.accept);
    nfa.sink = nfa.accept;
  }
  if (builder.unsupported_look()) {
    return invalid_argument("pattern '{}': lookahead is supported directly after ^ only", pattern);
  }
  std::optional<Dfa> dfa = builder.too_large() ? std::nullopt : Dfa::from_nfa(nfa, kMaxDfaStates);
  if (!dfa) {
    return resource_exhausted("pattern '{}' needs more than {} states", pattern, kMaxDfaStates);
  }
  return std::move(*dfa);
}

// Takes the lookaheads that follow a leading ^ out of the pattern.
std::vector<Ast> leading_looks(Ast* ast) {
  std::vector<Ast> looks;
  if (ast->kind != Kind::kCat || ast->children.empty() || ast->children[0].kind != Kind::kBegin) {
    return looks;
  }
  std::vector<Ast>& items = ast->children;
  std::size_t end = 1;
  while (end < items.size() && items[end].kind == Kind::kLook) {
    looks.push_back(std::move(items[end++]));
  }
  items.erase(items.begin() + 1, items.begin() + static_cast<std::ptrdiff_t>(end));
  return looks;
}

}  // namespace

CodePoints normalised(CodePoints ranges, bool negate) {
  std::sort(ranges.begin(), ranges.end());
  CodePoints merged;
  for (const auto& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  if (!negate) {
    return merged;
  }
  CodePoints out;
  std::uint32_t next = 0;
  for (const auto& [lo, hi] : merged) {
    if (next < lo) {
      out.emplace_back(next, lo - 1);
    }
    next = hi + 1;
  }
  if (next <= kMaxCodePoint) {
    out.emplace_back(next, kMaxCodePoint);
  }
  return out;
}

Result<DfaPtr> compile_pattern(std::string_view pattern, RegexMatch match) {
  TANDEM_ASSIGN(Ast ast, Parser(pattern).parse());
  const std::vector<Ast> looks = leading_looks(&ast);
  TANDEM_ASSIGN(Dfa dfa, to_dfa(ast, match, pattern));
  for (const Ast& look : looks) {
    Ast anchored = make(Kind::kCat);
    anchored.children.push_back(make(Kind::kBegin));
    anchored.children.push_back(look.children[0]);
    TANDEM_ASSIGN(const Dfa other, to_dfa(anchored, RegexMatch::kSearch, pattern));
    std::optional<Dfa> both =
        Dfa::product(dfa, other, look.negative ? Dfa::Op::kMinus : Dfa::Op::kAnd, kMaxDfaStates);
    if (!both) {
      return resource_exhausted("pattern '{}' needs more than {} states", pattern, kMaxDfaStates);
    }
    dfa = std::move(*both);
  }
  return std::make_shared<const Dfa>(std::move(dfa));
}

}  // namespace tandem::grammar
