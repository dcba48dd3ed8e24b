#include "engine/grammar/lexeme.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tandem::grammar {
namespace {

constexpr std::uint32_t kMaxCount = (1U << 20) - 2;
constexpr std::size_t kMaxStates = (1U << 18) - 1;
constexpr std::size_t kMaxTotalStates = 2000;  // larger automata skip the free-text shortcut
constexpr std::size_t kMaxLengthTable = 2048;
constexpr std::uint64_t kFreeFlag = 1U << 5;

// Places after a backslash, in the order in which a \u escape is read.
constexpr std::uint8_t kTail1 = 1;
constexpr std::uint8_t kTail2 = 2;
constexpr std::uint8_t kTail3 = 3;
constexpr std::uint8_t kAfterE0 = 4;
constexpr std::uint8_t kAfterEd = 5;
constexpr std::uint8_t kAfterF0 = 6;
constexpr std::uint8_t kAfterF4 = 7;
constexpr std::uint8_t kEscape = 8;
constexpr std::uint8_t kHex4 = 9;
constexpr std::uint8_t kHexD = 10;
constexpr std::uint8_t kHex3 = 11;
constexpr std::uint8_t kHex2 = 12;
constexpr std::uint8_t kHex1 = 13;
constexpr std::uint8_t kHigh2 = 14;
constexpr std::uint8_t kHigh1 = 15;
constexpr std::uint8_t kWantBackslash = 16;
constexpr std::uint8_t kWantU = 17;
constexpr std::uint8_t kWantD = 18;
constexpr std::uint8_t kWantLow = 19;
constexpr std::uint8_t kLow2 = 20;
constexpr std::uint8_t kLow1 = 21;

bool is_hex(std::uint8_t b) {
  return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
}

std::uint32_t hex_value(std::uint8_t b) {
  return b <= '9' ? b - '0' : (b | 32U) - 'a' + 10;
}

std::uint8_t utf8_next(std::uint8_t place, std::uint8_t b) {
  const auto in = [&](std::uint8_t lo, std::uint8_t hi, std::uint8_t to) {
    return b >= lo && b <= hi ? to : body::kDead;
  };
  switch (place) {
    case body::kBetween:
      return b < 0x80    ? body::kBetween
             : b < 0xC2  ? body::kDead
             : b < 0xE0  ? kTail1
             : b == 0xE0 ? kAfterE0
             : b == 0xED ? kAfterEd
             : b < 0xF0  ? kTail2
             : b == 0xF0 ? kAfterF0
             : b < 0xF4  ? kTail3
             : b == 0xF4 ? kAfterF4
                         : body::kDead;
    case kTail1:
      return in(0x80, 0xBF, body::kBetween);
    case kTail2:
      return in(0x80, 0xBF, kTail1);
    case kTail3:
      return in(0x80, 0xBF, kTail2);
    case kAfterE0:
      return in(0xA0, 0xBF, kTail1);
    case kAfterEd:
      return in(0x80, 0x9F, kTail1);
    case kAfterF0:
      return in(0x90, 0xBF, kTail2);
    case kAfterF4:
      return in(0x80, 0x8F, kTail2);
    default:
      return body::kDead;
  }
}

std::uint8_t escape_next(std::uint8_t place, std::uint8_t b) {
  const std::uint8_t lower = b | 32U;
  const auto hex = [&](std::uint8_t to) { return is_hex(b) ? to : body::kDead; };
  switch (place) {
    case kEscape:
      if (b == 'u') {
        return kHex4;
      }
      return std::string_view("\"\\/bfnrt").find(static_cast<char>(b)) != std::string_view::npos
                 ? body::kBetween
                 : body::kDead;
    case kHex4:
      return hex(lower == 'd' ? kHexD : kHex3);
    case kHexD:
      return b >= '0' && b <= '7' ? kHex2 : b <= 'B' || lower <= 'b' ? hex(kHigh2) : body::kDead;
    case kHex3:
      return hex(kHex2);
    case kHex2:
      return hex(kHex1);
    case kHex1:
      return hex(body::kBetween);
    case kHigh2:
      return hex(kHigh1);
    case kHigh1:
      return hex(kWantBackslash);
    case kWantBackslash:
      return b == '\\' ? kWantU : body::kDead;
    case kWantU:
      return b == 'u' ? kWantD : body::kDead;
    case kWantD:
      return lower == 'd' && is_hex(b) ? kWantLow : body::kDead;
    case kWantLow:
      return lower >= 'c' && is_hex(b) ? kLow2 : body::kDead;
    case kLow2:
      return hex(kLow1);
    case kLow1:
      return hex(body::kBetween);
    default:
      return body::kDead;
  }
}

struct BodyTable {
  std::array<std::array<std::uint8_t, 256>, body::kCount> quoted;
  std::array<std::array<std::uint8_t, 256>, body::kCount> raw;

  BodyTable() {
    for (std::uint8_t place = 0; place < body::kCount; ++place) {
      for (unsigned b = 0; b < 256; ++b) {
        const auto byte = static_cast<std::uint8_t>(b);
        raw[place][b] = place < kEscape ? utf8_next(place, byte) : body::kDead;
        quoted[place][b] = place >= kEscape ? escape_next(place, byte) : utf8_next(place, byte);
      }
    }
    for (unsigned b = 0; b < 32; ++b) {
      quoted[body::kBetween][b] = body::kDead;
    }
    quoted[body::kBetween]['"'] = body::kClosed;
    quoted[body::kBetween]['\\'] = kEscape;
  }
};

const BodyTable kBody;

struct Fields {
  std::uint8_t place = 0;
  bool free = false;
  std::uint32_t count = 0;
  Dfa::State state = 0;
  std::uint32_t value = 0;

  static Fields of(Lexeme::Position p) {
    return {static_cast<std::uint8_t>(p & 31U), (p & kFreeFlag) != 0,
            static_cast<std::uint32_t>((p >> 6) & 0xFFFFFU),
            static_cast<std::uint32_t>((p >> 26) & 0x3FFFFU), static_cast<std::uint32_t>(p >> 44)};
  }

  Lexeme::Position pack() const {
    return place | (free ? kFreeFlag : 0) | (std::uint64_t{count} << 6) |
           (std::uint64_t{state} << 26) | (std::uint64_t{value} << 44);
  }
};

int escape_byte(std::uint8_t b) {
  switch (b) {
    case '"':
    case '\\':
    case '/':
      return b;
    case 'b':
      return 8;
    case 'f':
      return 12;
    case 'n':
      return 10;
    case 'r':
      return 13;
    case 't':
      return 9;
    default:
      return -1;
  }
}

Dfa::State run_code_point(const Dfa& dfa, Dfa::State state, std::uint32_t c) {
  std::string bytes;
  if (c < 0x80) {
    bytes.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    bytes.push_back(static_cast<char>(0xC0 | (c >> 6)));
  } else if (c < 0x10000) {
    bytes.push_back(static_cast<char>(0xE0 | (c >> 12)));
    bytes.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
  } else {
    bytes.push_back(static_cast<char>(0xF0 | (c >> 18)));
    bytes.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    bytes.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
  }
  if (c >= 0x80) {
    bytes.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
  for (const char b : bytes) {
    state = dfa.next(state, static_cast<std::uint8_t>(b));
  }
  return state;
}

// One byte per class of bytes that neither the automaton nor UTF-8 tells apart.
std::vector<std::uint8_t> sample_bytes(const Dfa& dfa) {
  std::vector<std::uint8_t> samples;
  std::vector<bool> seen(256 * 16, false);
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    unsigned kind = std::min<unsigned>(utf8_next(body::kBetween, byte), 8);
    if (b >= 0x80 && b < 0xC0) {
      kind = b < 0x90 ? 9 : b < 0xA0 ? 10 : 11;
    }
    const std::size_t key = dfa.classes()[b] * 16U + kind;
    if (!seen[key]) {
      seen[key] = true;
      samples.push_back(byte);
    }
  }
  return samples;
}

// The states between characters that one character leads to. The tails of long characters are the
// same for most states, so they are worked out once.
class CharSuccessors {
 public:
  explicit CharSuccessors(const Dfa& dfa) : dfa_(dfa), samples_(sample_bytes(dfa)) {}

  // False if some character is refused.
  bool find(Dfa::State from, std::vector<Dfa::State>* out) {
    const Tail& tail = tail_of(from, body::kBetween);
    *out = tail.states;
    return tail.total;
  }

 private:
  struct Tail {
    bool total = true;
    std::vector<Dfa::State> states;
  };

  const Tail& tail_of(Dfa::State from, std::uint8_t place) {
    const std::uint64_t key = std::uint64_t{from} << 8 | place;
    const auto known = tails_.find(key);
    if (known != tails_.end()) {
      return known->second;
    }
    Tail tail = work_out(from, place);
    return tails_.emplace(key, std::move(tail)).first->second;
  }

  Tail work_out(Dfa::State from, std::uint8_t place) {
    Tail out;
    for (const std::uint8_t byte : samples_) {
      const std::uint8_t next_place = utf8_next(place, byte);
      if (next_place == body::kDead) {
        continue;
      }
      const Dfa::State to = dfa_.next(from, byte);
      if (to == Dfa::kDead) {
        return {false, {}};
      }
      if (next_place == body::kBetween) {
        add(to, &out.states);
        continue;
      }
      const Tail& rest = tail_of(to, next_place);
      if (!rest.total) {
        return {false, {}};
      }
      for (const Dfa::State state : rest.states) {
        add(state, &out.states);
      }
    }
    return out;
  }

  static void add(Dfa::State state, std::vector<Dfa::State>* states) {
    if (std::find(states->begin(), states->end(), state) == states->end()) {
      states->push_back(state);
    }
  }

  const Dfa& dfa_;
  std::vector<std::uint8_t> samples_;
  std::unordered_map<std::uint64_t, Tail> tails_;
};

bool starts_character(std::uint8_t byte) {
  return (byte & 0xC0) != 0x80;
}

// The moves of an automaton with what they add to the length in characters.
class CharMoves {
 public:
  explicit CharMoves(const Dfa& dfa) : moves_(dfa.size()), sources_(dfa.size()) {
    std::vector<std::uint8_t> samples;
    for (unsigned b = 0; b < 256; ++b) {
      const auto byte = static_cast<std::uint8_t>(b);
      const bool begins = starts_character(byte);
      if (std::none_of(samples.begin(), samples.end(), [&](std::uint8_t other) {
            return dfa.classes()[other] == dfa.classes()[b] && starts_character(other) == begins;
          })) {
        samples.push_back(byte);
      }
    }
    for (Dfa::State s = 1; s < dfa.size(); ++s) {
      for (const std::uint8_t byte : samples) {
        const Dfa::State to = dfa.next(s, byte);
        if (to != Dfa::kDead) {
          moves_[s].push_back({to, starts_character(byte)});
          sources_[to].push_back({s, starts_character(byte)});
        }
      }
    }
  }

  std::vector<std::uint32_t> shortest(const Dfa& dfa) const {
    std::vector<std::uint32_t> out(moves_.size(), kNoLimit);
    std::deque<Dfa::State> todo;
    for (Dfa::State s = 1; s < out.size(); ++s) {
      if (dfa.accepts(s)) {
        out[s] = 0;
        todo.push_back(s);
      }
    }
    while (!todo.empty()) {
      const Dfa::State state = todo.front();
      todo.pop_front();
      for (const Move& from : sources_[state]) {
        const std::uint32_t via = out[state] + from.chars;
        if (via < out[from.state]) {
          out[from.state] = via;
          from.chars == 0 ? todo.push_front(from.state) : todo.push_back(from.state);
        }
      }
    }
    return out;
  }

  // Every state reaches an end, so only states before a cycle are unbounded: those that are left
  // when states whose successors are all known are taken away one by one.
  std::vector<std::uint32_t> longest() const {
    std::vector<std::uint32_t> out(moves_.size(), 0);
    std::vector<std::size_t> open(moves_.size());
    std::vector<Dfa::State> todo;
    for (Dfa::State s = 1; s < out.size(); ++s) {
      open[s] = moves_[s].size();
      if (open[s] == 0) {
        todo.push_back(s);
      }
    }
    while (!todo.empty()) {
      const Dfa::State state = todo.back();
      todo.pop_back();
      for (const Move& from : sources_[state]) {
        out[from.state] = std::max(out[from.state], out[state] + from.chars);
        if (--open[from.state] == 0) {
          todo.push_back(from.state);
        }
      }
    }
    for (Dfa::State s = 1; s < out.size(); ++s) {
      if (open[s] != 0) {
        out[s] = kNoLimit;
      }
    }
    return out;
  }

  // out[s][k]: k more characters can end the text.
  std::vector<std::vector<bool>> lengths(const Dfa& dfa, std::size_t width) const {
    std::vector<std::vector<bool>> out(moves_.size(), std::vector<bool>(width, false));
    std::vector<std::pair<Dfa::State, std::size_t>> todo;
    for (Dfa::State s = 1; s < out.size(); ++s) {
      if (dfa.accepts(s)) {
        out[s][0] = true;
        todo.emplace_back(s, 0);
      }
    }
    while (!todo.empty()) {
      const std::pair<Dfa::State, std::size_t> at = todo.back();
      todo.pop_back();
      for (const Move& from : sources_[at.first]) {
        const std::size_t length = at.second + from.chars;
        if (length < width && !out[from.state][length]) {
          out[from.state][length] = true;
          todo.emplace_back(from.state, length);
        }
      }
    }
    return out;
  }

 private:
  struct Move {
    Dfa::State state;
    std::uint32_t chars;
  };

  std::vector<std::vector<Move>> moves_;
  std::vector<std::vector<Move>> sources_;
};

}  // namespace

std::uint8_t body::next(TextForm form, std::uint8_t place, std::uint8_t byte) {
  return form == TextForm::kQuoted ? kBody.quoted[place][byte] : kBody.raw[place][byte];
}

std::optional<Lexeme> Lexeme::create(TextForm form, DfaPtr dfa, std::uint32_t min_chars,
                                     std::uint32_t max_chars) {
  if (min_chars > max_chars || min_chars > kMaxCount ||
      (max_chars != kNoLimit && max_chars > kMaxCount) ||
      (dfa != nullptr && (dfa->empty() || dfa->size() > kMaxStates))) {
    return std::nullopt;
  }
  Lexeme out;
  out.form_ = form;
  out.dfa_ = std::move(dfa);
  out.min_ = min_chars;
  out.max_ = max_chars;
  if (out.dfa_ != nullptr) {
    if (out.counting()) {
      out.measure_lengths();
      if (!out.live(out.dfa_->start(), 0)) {
        return std::nullopt;
      }
    }
    out.measure_totals();
  }
  return out;
}

void Lexeme::measure_lengths() {
  const CharMoves moves(*dfa_);
  shortest_ = moves.shortest(*dfa_);
  longest_ = moves.longest();
  if (min_ > 0 && max_ != kNoLimit) {
    lengths_ = moves.lengths(*dfa_, std::min<std::size_t>(max_, kMaxLengthTable) + 1);
  }
}

void Lexeme::measure_totals() {
  const std::size_t n = dfa_->size();
  total_.assign(n, 0);
  if (n > kMaxTotalStates || max_ != kNoLimit) {
    return;
  }
  CharSuccessors successors(*dfa_);
  std::vector<std::vector<Dfa::State>> next(n);
  for (Dfa::State s = 1; s < n; ++s) {
    total_[s] = successors.find(s, &next[s]) ? 1 : 0;
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t s = n; s-- > 1;) {
      if (total_[s] != 0 && !std::all_of(next[s].begin(), next[s].end(),
                                         [&](Dfa::State to) { return total_[to] != 0; })) {
        total_[s] = 0;
        changed = true;
      }
    }
  }
  for (Dfa::State s = 1; s < n; ++s) {
    if (total_[s] != 0 && dfa_->accepts(s) && next[s].size() == 1 && next[s][0] == s) {
      total_[s] = 2;
    }
  }
}

bool Lexeme::live(Dfa::State state, std::uint32_t count) const {
  if (state == Dfa::kDead) {
    return false;
  }
  if (!counting()) {
    return true;
  }
  if (max_ != kNoLimit && (count > max_ || shortest_[state] > max_ - count)) {
    return false;
  }
  if (count >= min_) {
    return true;
  }
  if (max_ == kNoLimit) {
    return longest_[state] >= min_ - count;
  }
  const std::vector<bool>& lengths = lengths_[state];
  for (std::size_t k = min_ - count; k <= max_ - count && k < lengths.size(); ++k) {
    if (lengths[k]) {
      return true;
    }
  }
  return false;
}

std::uint32_t Lexeme::counted(std::uint32_t count) const {
  return max_ == kNoLimit ? std::min(count, min_) : count;
}

Lexeme::Position Lexeme::start() const {
  Fields f;
  if (dfa_ == nullptr || (!total_.empty() && total_[dfa_->start()] == 2)) {
    f.free = true;
  } else {
    f.state = dfa_->start();
  }
  return f.pack();
}

Lexeme::Step Lexeme::step(Position* position, std::uint8_t byte) const {
  if ((*position & kFreeFlag) != 0) {
    return step_free(position, byte);
  }
  return (*position & 31U) >= kEscape ? step_escape(position, byte) : step_dfa(position, byte);
}

Lexeme::Step Lexeme::step_free(Position* position, std::uint8_t byte) const {
  Fields f = Fields::of(*position);
  const std::uint8_t next = body::next(form_, f.place, byte);
  if (next == body::kDead) {
    return Step::kDead;
  }
  if (f.place == body::kBetween) {
    if (next == body::kClosed) {
      return f.count >= min_ ? Step::kDone : Step::kDead;
    }
    if (f.count >= max_) {
      return Step::kDead;
    }
    f.count = counted(f.count + 1);
  }
  f.place = next;
  *position = f.pack();
  return Step::kAlive;
}

Lexeme::Step Lexeme::land(Position* position, Dfa::State state, std::uint32_t count) const {
  if (!live(state, count)) {
    return Step::kDead;
  }
  Fields f;
  f.count = counted(count);
  if (total_[state] == 2) {
    f.free = true;
  } else {
    f.state = state;
  }
  *position = f.pack();
  return Step::kAlive;
}

Lexeme::Step Lexeme::step_dfa(Position* position, std::uint8_t byte) const {
  const Fields f = Fields::of(*position);
  if (form_ == TextForm::kQuoted) {
    if (byte == '"') {
      return dfa_->accepts(f.state) && f.count >= min_ ? Step::kDone : Step::kDead;
    }
    if (byte == '\\') {
      for (const char c : std::string_view("\"\\/bfnrt")) {
        const int plain = escape_byte(static_cast<std::uint8_t>(c));
        if (live(dfa_->next(f.state, static_cast<std::uint8_t>(plain)), f.count + 1)) {
          Fields next = f;
          next.place = kEscape;
          *position = next.pack();
          return Step::kAlive;
        }
      }
      return Step::kDead;
    }
    if (byte < 32) {
      return Step::kDead;
    }
  }
  return land(position, dfa_->next(f.state, byte), f.count + starts_character(byte));
}

Lexeme::Step Lexeme::step_escape(Position* position, std::uint8_t byte) const {
  Fields f = Fields::of(*position);
  if (f.place == kEscape && byte != 'u') {
    const int plain = escape_byte(byte);
    return plain < 0
               ? Step::kDead
               : land(position, dfa_->next(f.state, static_cast<std::uint8_t>(plain)), f.count + 1);
  }
  const std::uint8_t next = escape_next(f.place, byte);
  if (next == body::kDead || total_[f.state] == 0) {
    return Step::kDead;
  }
  switch (f.place) {
    case kEscape:
      f.value = 0;
      break;
    case kWantBackslash:
    case kWantU:
    case kWantD:
      break;
    case kWantLow:
      f.value = (f.value << 2) | (hex_value(byte) & 3U);
      break;
    default:
      f.value = (f.value << 4) | hex_value(byte);
  }
  if (f.place == kHigh1) {
    f.value &= 0x3FFU;
  }
  if (next == body::kBetween) {
    const std::uint32_t c = f.place == kLow1 ? 0x10000 + f.value : f.value;
    return land(position, run_code_point(*dfa_, f.state, c), f.count + 1);
  }
  f.place = next;
  *position = f.pack();
  return Step::kAlive;
}

bool Lexeme::accepts(Position position) const {
  const Fields f = Fields::of(position);
  if (form_ != TextForm::kRaw || f.place != body::kBetween || f.count < min_) {
    return false;
  }
  return f.free || dfa_->accepts(f.state);
}

bool Lexeme::is_free(Position position, std::uint32_t* chars_left) const {
  const Fields f = Fields::of(position);
  *chars_left = max_ == kNoLimit ? kNoLimit : max_ - f.count;
  return f.free;
}

bool Lexeme::is_total(Position position) const {
  const Fields f = Fields::of(position);
  return !f.free && f.place == body::kBetween && total_[f.state] != 0;
}

}  // namespace tandem::grammar
