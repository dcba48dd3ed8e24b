// compile_ebnf: GBNF, the grammar notation of llama.cpp: rules `name ::= ...` with literals,
// character classes, groups, alternatives and repetition, # comments; the answer is `root`.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "engine/grammar/regex.h"

namespace tandem::grammar {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::uint32_t kMaxRepeat = 1024;
constexpr std::size_t kMaxNodes = 200000;
constexpr std::uint32_t kMaxCodePoint = 0x10FFFF;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

int hex_value(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// Writes the graph while it reads: every construct goes between two nodes.
class EbnfReader {
 public:
  EbnfReader(std::string_view text, Graph* graph) : text_(text), graph_(graph) {}

  Result<RuleId> read() {
    for (skip(true); at_ < text_.size(); skip(true)) {
      TANDEM_TRY(read_rule());
    }
    for (const auto& [name, rule] : rules_) {
      if (!rule.defined) {
        return invalid_argument("line {}: rule '{}' is used but not defined", rule.line, name);
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) {
      return invalid_argument("there is no rule named root");
    }
    return root->second.id;
  }

 private:
  struct Rule {
    RuleId id = 0;
    NodeId start = 0;
    NodeId end = 0;
    bool defined = false;
    int line = 0;  // of its first use or definition
  };

  // Bounds of a repetition; max kNoLimit: any number.
  struct Repeat {
    std::uint32_t min = 1;
    std::uint32_t max = 1;
  };

  template <typename... Args>
  Status error(fmt::format_string<Args...> format, Args&&... args) const {
    const auto upto = text_.substr(0, std::min(at_, text_.size()));
    const auto line = 1 + std::count(upto.begin(), upto.end(), '\n');
    return invalid_argument("line {}: {}", line, fmt::format(format, std::forward<Args>(args)...));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }

  // Blanks and comments; line ends only if wanted.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string take_name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) {
      ++at_;
    }
    return std::string(text_.substr(from, at_ - from));
  }

  Rule& rule(const std::string& name) {
    Rule& found = rules_[name];
    if (found.line == 0) {
      const auto upto = text_.substr(0, at_);
      found.line = 1 + static_cast<int>(std::count(upto.begin(), upto.end(), '\n'));
      found.start = graph_->add_node();
      found.end = graph_->add_node();
      graph_->set_end(found.end);
      found.id = graph_->add_rule(found.start);
    }
    return found;
  }

  Status read_rule() {
    const std::string name = take_name();
    skip(false);
    if (name.empty() || !take("::=")) {
      return error("expected a rule: NAME ::= ...");
    }
    Rule& made = rule(name);
    if (made.defined) {
      return error("rule '{}' is defined twice", name);
    }
    made.defined = true;
    const Rule copy = made;
    skip(true);
    TANDEM_TRY(read_alternatives(copy.start, copy.end, 0));
    skip(false);
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
      return error("unexpected '{}'", peek());
    }
    return ok_status();
  }

  Status read_alternatives(NodeId from, NodeId to, int depth) {
    if (depth > kMaxDepth) {
      return error("groups are nested deeper than {}", kMaxDepth);
    }
    do {
      TANDEM_TRY(read_sequence(from, to, depth));
      skip_before_bar(depth);
      if (peek() != '|') {
        return ok_status();
      }
      ++at_;
      skip(true);
    } while (true);
  }

  // A bar may stand at the beginning of the next line; inside a group lines do not count at all.
  void skip_before_bar(int depth) {
    const std::size_t before = at_;
    skip(true);
    if (depth == 0 && peek() != '|') {
      at_ = before;
    }
  }

  bool starts_element() const {
    const char c = peek();
    return c == '"' || c == '\'' || c == '[' || c == '(' || c == '.' || is_name_char(c);
  }

  Status read_sequence(NodeId from, NodeId to, int depth) {
    NodeId here = from;
    for (skip(depth > 0); starts_element(); skip(depth > 0)) {
      const NodeId next = graph_->add_node();
      TANDEM_TRY(read_element(here, next, depth));
      here = next;
    }
    graph_->empty(here, to);
    return ok_status();
  }

  // Moves behind an atom without reading what it means.
  Status skip_atom() {
    int open = 0;
    do {
      const char c = peek();
      if (at_ >= text_.size()) {
        return error("the text ends inside a group, a literal or a class");
      }
      if (c == '"' || c == '\'' || c == '[') {
        TANDEM_TRY(skip_quoted(c == '[' ? ']' : c));
      } else if (c == '#') {
        skip(true);
      } else if (open == 0 && is_name_char(c)) {
        take_name();
      } else {
        open += c == '(' ? 1 : c == ')' ? -1 : 0;
        ++at_;
      }
    } while (open > 0);
    return ok_status();
  }

  Status skip_quoted(char end) {
    for (++at_; peek() != end; ++at_) {
      at_ += peek() == '\\' ? 1 : 0;
      if (at_ >= text_.size()) {
        return error("the text ends inside a literal or a class");
      }
    }
    ++at_;
    return ok_status();
  }

  // One element with its repetition: its text is read once for every copy.
  Status read_element(NodeId from, NodeId to, int depth) {
    const std::size_t begin = at_;
    TANDEM_TRY(skip_atom());
    TANDEM_ASSIGN(const Repeat repeat, read_repeat());
    const std::size_t after = at_;
    NodeId here = from;
    for (std::uint32_t i = 0; i < repeat.min; ++i) {
      TANDEM_ASSIGN(here, copy_atom(begin, here, depth));
    }
    if (repeat.max == kNoLimit) {
      const NodeId loop = graph_->add_node();
      graph_->empty(here, loop);
      TANDEM_ASSIGN(const NodeId again, copy_atom(begin, loop, depth));
      graph_->empty(again, loop);
      here = loop;
    }
    for (std::uint32_t i = repeat.min; repeat.max != kNoLimit && i < repeat.max; ++i) {
      graph_->empty(here, to);
      TANDEM_ASSIGN(here, copy_atom(begin, here, depth));
    }
    graph_->empty(here, to);
    at_ = after;
    return ok_status();
  }

  Result<NodeId> copy_atom(std::size_t begin, NodeId from, int depth) {
    if (graph_->node_count() > kMaxNodes) {
      return resource_exhausted("the grammar needs more than {} nodes", kMaxNodes);
    }
    at_ = begin;
    const NodeId next = graph_->add_node();
    TANDEM_TRY(read_atom(from, next, depth));
    return next;
  }

  Result<std::uint32_t> read_count() {
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + static_cast<std::uint32_t>(peek() - '0');
      ++at_;
      if (value > kMaxRepeat) {
        return error("a repetition of more than {}", kMaxRepeat);
      }
    }
    if (at_ == begin) {
      return error("expected a number in braces");
    }
    return value;
  }

  Result<Repeat> read_repeat() {
    if (take("*")) {
      return Repeat{0, kNoLimit};
    }
    if (take("+")) {
      return Repeat{1, kNoLimit};
    }
    if (take("?")) {
      return Repeat{0, 1};
    }
    Repeat repeat;
    if (!take("{")) {
      return repeat;
    }
    TANDEM_ASSIGN(repeat.min, read_count());
    repeat.max = repeat.min;
    if (take(",")) {
      repeat.max = kNoLimit;
      if (peek() != '}') {
        TANDEM_ASSIGN(repeat.max, read_count());
      }
    }
    if (!take("}")) {
      return error("expected }} after a repetition");
    }
    if (repeat.max < repeat.min) {
      return error("a repetition of {} to {}", repeat.min, repeat.max);
    }
    return repeat;
  }

  Status read_atom(NodeId from, NodeId to, int depth) {
    const char c = peek();
    if (c == '"' || c == '\'') {
      return read_literal(from, to);
    }
    if (c == '[') {
      return read_class(from, to);
    }
    if (c == '.') {
      ++at_;
      write_class({{0, kMaxCodePoint}}, from, to);
      return ok_status();
    }
    if (c == '(') {
      ++at_;
      skip(true);
      TANDEM_TRY(read_alternatives(from, to, depth + 1));
      skip(true);
      return take(")") ? ok_status() : error("expected ) to close a group");
    }
    const std::string name = take_name();
    graph_->call(from, rule(name).id, to);
    return ok_status();
  }

  Result<std::uint32_t> read_hex(int digits) {
    std::uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_value(peek());
      if (digit < 0) {
        return error("expected {} hexadecimal digits after a backslash", digits);
      }
      value = value * 16 + static_cast<std::uint32_t>(digit);
      ++at_;
    }
    return value;
  }

  // One character of a literal or class as a code point.
  Result<std::uint32_t> read_char() {
    if (at_ >= text_.size()) {
      return error("the text ends inside a literal or class");
    }
    if (peek() != '\\') {
      return read_utf8();
    }
    ++at_;
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n':
        return std::uint32_t{'\n'};
      case 'r':
        return std::uint32_t{'\r'};
      case 't':
        return std::uint32_t{'\t'};
      case 'x':
        return read_hex(2);
      case 'u':
        return read_hex(4);
      case 'U':
        return read_hex(8);
      case '\\':
      case '"':
      case '\'':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<std::uint32_t>(c);
      default:
        return error("unknown escape \\{}", c);
    }
  }

  Result<std::uint32_t> read_utf8() {
    const auto first = static_cast<unsigned char>(text_[at_]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (at_ + length > text_.size()) {
      return error("the text is no valid UTF-8");
    }
    std::uint32_t value = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
      value = value << 6 | (static_cast<unsigned char>(text_[at_ + i]) & 0x3FU);
    }
    at_ += length;
    return value;
  }

  Status read_literal(NodeId from, NodeId to) {
    const char quote = peek();
    ++at_;
    NodeId here = from;
    while (peek() != quote) {
      TANDEM_ASSIGN(const std::uint32_t code, read_char());
      if (code > kMaxCodePoint) {
        return error("no such character: {:#x}", code);
      }
      const NodeId next = graph_->add_node();
      write_class({{code, code}}, here, next);
      here = next;
    }
    ++at_;
    graph_->empty(here, to);
    return ok_status();
  }

  Status read_class(NodeId from, NodeId to) {
    ++at_;
    const bool negate = take("^");
    CodePoints ranges;
    while (peek() != ']') {
      TANDEM_ASSIGN(const std::uint32_t low, read_char());
      std::uint32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        TANDEM_ASSIGN(high, read_char());
      }
      if (high < low || high > kMaxCodePoint) {
        return error("a range of characters from {:#x} to {:#x}", low, high);
      }
      ranges.emplace_back(low, high);
    }
    ++at_;
    write_class(normalised(std::move(ranges), negate), from, to);
    return ok_status();
  }

  // The UTF-8 forms of the code points as byte edges.
  void write_class(const CodePoints& ranges, NodeId from, NodeId to) {
    Nfa nfa;
    const std::uint32_t start = nfa.add_node();
    const std::uint32_t end = nfa.add_node();
    for (const auto& [low, high] : ranges) {
      nfa.add_code_points(start, low, high, end);
    }
    std::vector<NodeId> nodes(nfa.nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = i == start ? from : i == end ? to : graph_->add_node();
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const Nfa::Move& move : nfa.nodes[i].moves) {
        graph_->byte(nodes[i], move.lo, move.hi, nodes[move.target]);
      }
      for (const Nfa::Empty& empty : nfa.nodes[i].empties) {
        graph_->empty(nodes[i], nodes[empty.target]);
      }
    }
  }

  std::string_view text_;
  Graph* graph_;
  std::size_t at_ = 0;
  std::map<std::string, Rule> rules_;
};

}  // namespace

Result<GrammarPtr> compile_ebnf(const VocabularyPtr& vocabulary, std::string_view text) {
  auto graph = std::make_shared<Graph>();
  TANDEM_ASSIGN(const RuleId root, EbnfReader(text, graph.get()).read());
  TANDEM_TRY(graph->finish(root));
  auto machine = std::make_shared<Machine>(std::move(graph), vocabulary, EntryMode::kImmediate);
  return GrammarPtr(
      std::make_shared<CompiledGrammar>(std::move(machine), std::vector<Unenforced>{}));
}

}  // namespace tandem::grammar
