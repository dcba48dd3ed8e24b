#include "engine/grammar/number.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "foundation/base/random.h"

namespace tandem::grammar {
namespace {

constexpr int kMaxIntegerDigits = 40;
constexpr int kMaxFractionDigits = 40;
constexpr std::uint64_t kMaxModulus = 20000;

int digits_compare(const std::string& a, const std::string& b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

int magnitude_compare(const Decimal& a, const Decimal& b) {
  if (a.integer.size() != b.integer.size()) {
    return a.integer.size() < b.integer.size() ? -1 : 1;
  }
  const int high = digits_compare(a.integer, b.integer);
  return high != 0 ? high : digits_compare(a.fraction, b.fraction);
}

// Follows the comparison of the digits read so far with one fixed magnitude.
struct Comparator {
  std::uint16_t pos = 0;  // digits of the current part that were read, saturated
  std::int8_t sign = 0;   // of (read - bound) so far

  void integer_digit(const Decimal& bound, char digit) {
    if (sign == 0 && pos < bound.integer.size()) {
      sign = static_cast<std::int8_t>((digit > bound.integer[pos]) - (digit < bound.integer[pos]));
    }
    pos = static_cast<std::uint16_t>(std::min<std::size_t>(pos + 1U, bound.integer.size() + 1));
  }

  int after_integer(const Decimal& bound) const {
    if (pos != bound.integer.size()) {
      return pos < bound.integer.size() ? -1 : 1;
    }
    return sign;
  }

  void fraction_digit(const Decimal& bound, char digit) {
    if (sign == 0) {
      const char other = pos < bound.fraction.size() ? bound.fraction[pos] : '0';
      sign = static_cast<std::int8_t>((digit > other) - (digit < other));
      pos = static_cast<std::uint16_t>(std::min<std::size_t>(pos + 1U, bound.fraction.size()));
    }
    if (sign != 0) {
      pos = 0;
    }
  }

  int after_fraction(const Decimal& bound) const {
    return sign == 0 && pos < bound.fraction.size() ? -1 : sign;
  }
};

// One condition on the magnitude, fixed once the sign is known.
struct Condition {
  Decimal bound;
  bool less_ok, equal_ok, greater_ok;

  bool holds(int order) const { return order < 0 ? less_ok : order == 0 ? equal_ok : greater_ok; }
};

// A multiple-of rule on scaled integers: the value times 10^scale is a multiple of `modulus`.
struct Modulus {
  std::uint64_t modulus;
  int scale;
};

enum class Phase : std::uint8_t { kStart, kMinus, kZero, kInteger, kDot, kFraction };

struct Place {
  Phase phase = Phase::kStart;
  bool negative = false;
  std::uint8_t digits = 0;  // of the current part, as far as they matter
  std::vector<Comparator> comparators;
  std::vector<std::uint32_t> remainders;

  std::string key() const {
    std::string out;
    out.push_back(static_cast<char>(phase));
    out.push_back(negative ? 1 : 0);
    out.push_back(static_cast<char>(digits));
    for (const Comparator& c : comparators) {
      out.push_back(static_cast<char>(c.pos & 255));
      out.push_back(static_cast<char>(c.pos >> 8));
      out.push_back(static_cast<char>(c.sign));
    }
    for (const std::uint32_t r : remainders) {
      out.append(reinterpret_cast<const char*>(&r), sizeof r);
    }
    return out;
  }
};

class NumberBuilder {
 public:
  explicit NumberBuilder(const NumberRange& range) : range_(range) {}

  Result<DfaPtr> build() {
    TANDEM_TRY(prepare());
    const Dfa::State start = id_of(Place{});
    while (!todo_.empty()) {
      if (ids_.size() > kMaxDfaStates) {
        return resource_exhausted("the number range needs more than {} states", kMaxDfaStates);
      }
      const auto [place, state] = std::move(todo_.front());
      todo_.pop_front();
      expand(place, state);
    }
    return std::make_shared<const Dfa>(std::move(builder_).build(start));
  }

 private:
  Status prepare() {
    for (const bool negative : {false, true}) {
      std::vector<Condition>& out = conditions_[negative ? 1 : 0];
      impossible_[negative ? 1 : 0] = !add_bounds(negative, &out);
      for (const Decimal& value : range_.excluded) {
        if (value.is_zero() || value.negative == negative) {
          out.push_back({value, true, false, true});
        }
      }
    }
    for (const Decimal& multiple : range_.multiples_of) {
      const int scale = static_cast<int>(multiple.fraction.size());
      const std::string digits = multiple.integer + multiple.fraction;
      std::uint64_t modulus = 0;
      for (const char c : digits) {
        modulus = std::min<std::uint64_t>(modulus * 10 + static_cast<std::uint64_t>(c - '0'),
                                          kMaxModulus + 1);
      }
      if (modulus == 0 || modulus > kMaxModulus || scale > 15) {
        return resource_exhausted("multipleOf {} needs too large an automaton", multiple.text());
      }
      moduli_.push_back({modulus, scale});
    }
    set_fraction_limit();
    return ok_status();
  }

  // Decimals that a reader's double cannot tell from the bound must not slip past it.
  void set_fraction_limit() {
    fraction_limit_ = range_.integer ? 0 : kMaxFractionDigits;
    const auto limit = [&](const std::optional<Decimal>& bound, bool exclusive) {
      if (bound && exclusive && !bound->is_zero()) {
        const int left = 15 - static_cast<int>(bound->integer.size());
        fraction_limit_ = std::min(fraction_limit_,
                                   std::max({left, static_cast<int>(bound->fraction.size()), 0}));
      }
    };
    limit(range_.min, range_.min_exclusive);
    limit(range_.max, range_.max_exclusive);
    if (!range_.excluded.empty() || !range_.multiples_of.empty()) {
      fraction_limit_ = std::min(fraction_limit_, 15);
    }
  }

  // False if no magnitude with this sign can satisfy the bounds.
  bool add_bounds(bool negative, std::vector<Condition>* out) const {
    const Decimal zero;
    if (range_.min) {
      const bool open = range_.min_exclusive;
      if (!negative && (!range_.min->negative || range_.min->is_zero())) {
        out->push_back({*range_.min, false, !open, true});
      } else if (negative && !range_.min->negative && !range_.min->is_zero()) {
        return false;
      } else if (negative) {
        out->push_back({*range_.min, true, !open, false});
      }
    }
    if (range_.max) {
      const bool open = range_.max_exclusive;
      if (negative && (range_.max->negative || range_.max->is_zero())) {
        out->push_back({*range_.max, false, !open, true});
      } else if (!negative && range_.max->negative && !range_.max->is_zero()) {
        return false;
      } else if (!negative) {
        out->push_back({*range_.max, true, !open, false});
      }
    }
    return true;
  }

  const std::vector<Condition>& conditions(const Place& place) const {
    return conditions_[place.negative ? 1 : 0];
  }

  bool accepting(const Place& place) const {
    if (place.phase == Phase::kStart || place.phase == Phase::kMinus ||
        place.phase == Phase::kDot) {
      return false;
    }
    const std::vector<Condition>& rules = conditions(place);
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const Comparator& c = place.comparators[i];
      int order = 0;
      if (place.phase == Phase::kFraction) {
        order = c.after_fraction(rules[i].bound);
      } else {
        order = c.after_integer(rules[i].bound);
        if (order == 0 && !rules[i].bound.fraction.empty()) {
          order = -1;
        }
      }
      if (!rules[i].holds(order)) {
        return false;
      }
    }
    for (std::size_t i = 0; i < moduli_.size(); ++i) {
      const int read = place.phase == Phase::kFraction ? std::min<int>(place.digits, 15) : 0;
      std::uint64_t rest = place.remainders[i];
      for (int k = read; k < moduli_[i].scale; ++k) {
        rest = rest * 10 % moduli_[i].modulus;
      }
      if (rest != 0) {
        return false;
      }
    }
    return true;
  }

  Dfa::State id_of(const Place& place) {
    const auto [it, added] = ids_.emplace(place.key(), 0);
    if (added) {
      it->second = builder_.add_state(accepting(place));
      todo_.emplace_back(place, it->second);
    }
    return it->second;
  }

  void begin_digits(Place* place) const {
    place->comparators.assign(conditions(*place).size(), {});
    place->remainders.assign(moduli_.size(), 0);
  }

  void expand(const Place& place, Dfa::State from) {
    if (place.phase == Phase::kStart && !impossible_[1]) {
      Place next;
      next.phase = Phase::kMinus;
      next.negative = true;
      builder_.set(from, '-', id_of(next));
    }
    for (char digit = '0'; digit <= '9'; ++digit) {
      Place next = place;
      if (step(digit, &next)) {
        builder_.set(from, static_cast<std::uint8_t>(digit), id_of(next));
      }
    }
    if ((place.phase == Phase::kZero || place.phase == Phase::kInteger) && fraction_limit_ > 0) {
      Place next = place;
      next.phase = Phase::kDot;
      next.digits = 0;
      for (std::size_t i = 0; i < next.comparators.size(); ++i) {
        const int order = next.comparators[i].after_integer(conditions(place)[i].bound);
        next.comparators[i] = {0, static_cast<std::int8_t>(order)};
      }
      builder_.set(from, '.', id_of(next));
    }
    if (place.phase == Phase::kZero || place.phase == Phase::kInteger ||
        place.phase == Phase::kFraction) {
      add_exponent(from);
    }
  }

  bool step(char digit, Place* place) const {
    switch (place->phase) {
      case Phase::kStart:
        if (impossible_[0]) {
          return false;
        }
        [[fallthrough]];
      case Phase::kMinus:
        begin_digits(place);
        if (digit == '0') {
          place->phase = Phase::kZero;
          return true;
        }
        place->phase = Phase::kInteger;
        place->digits = 0;
        integer_digit(digit, place);
        return true;
      case Phase::kZero:
        return false;
      case Phase::kInteger:
        if (place->digits >= kMaxIntegerDigits) {
          return false;
        }
        integer_digit(digit, place);
        return true;
      case Phase::kDot:
      case Phase::kFraction:
        if (place->digits >= fraction_limit_) {
          return false;
        }
        return fraction_digit(digit, place);
    }
    return false;
  }

  void integer_digit(char digit, Place* place) const {
    ++place->digits;
    for (std::size_t i = 0; i < place->comparators.size(); ++i) {
      place->comparators[i].integer_digit(conditions(*place)[i].bound, digit);
    }
    add_to_remainders(digit, place);
  }

  bool fraction_digit(char digit, Place* place) const {
    for (const Modulus& m : moduli_) {
      if (place->digits >= m.scale && digit != '0') {
        return false;
      }
    }
    for (std::size_t i = 0; i < place->comparators.size(); ++i) {
      place->comparators[i].fraction_digit(conditions(*place)[i].bound, digit);
    }
    for (std::size_t i = 0; i < moduli_.size(); ++i) {
      if (place->digits < moduli_[i].scale) {
        place->remainders[i] = remainder(place->remainders[i], digit, moduli_[i]);
      }
    }
    ++place->digits;
    place->phase = Phase::kFraction;
    return true;
  }

  static std::uint32_t remainder(std::uint64_t before, char digit, const Modulus& m) {
    return static_cast<std::uint32_t>((before * 10 + static_cast<std::uint64_t>(digit - '0')) %
                                      m.modulus);
  }

  void add_to_remainders(char digit, Place* place) const {
    for (std::size_t i = 0; i < moduli_.size(); ++i) {
      place->remainders[i] = remainder(place->remainders[i], digit, moduli_[i]);
    }
  }

  // Exponents of at most two digits keep every value finite.
  void add_exponent(Dfa::State from) {
    if (range_.integer || !range_.plain()) {
      return;
    }
    if (exponent_ == Dfa::kDead) {
      exponent_ = builder_.add_state(false);
      const Dfa::State sign = builder_.add_state(false);
      const Dfa::State one = builder_.add_state(true);
      const Dfa::State two = builder_.add_state(true);
      builder_.set(exponent_, '+', sign);
      builder_.set(exponent_, '-', sign);
      for (std::uint8_t digit = '0'; digit <= '9'; ++digit) {
        builder_.set(exponent_, digit, one);
        builder_.set(sign, digit, one);
        builder_.set(one, digit, two);
      }
    }
    builder_.set(from, 'e', exponent_);
    builder_.set(from, 'E', exponent_);
  }

  const NumberRange& range_;
  std::vector<Condition> conditions_[2];  // for magnitudes of positive and negative numbers
  bool impossible_[2] = {false, false};
  std::vector<Modulus> moduli_;
  int fraction_limit_ = 0;
  Dfa::Builder builder_;
  Dfa::State exponent_ = Dfa::kDead;
  std::unordered_map<std::string, Dfa::State> ids_;
  std::deque<std::pair<Place, Dfa::State>> todo_;
};

}  // namespace

std::string Decimal::text() const {
  std::string out = negative ? "-" : "";
  out += integer.empty() ? "0" : integer;
  return fraction.empty() ? out : out + "." + fraction;
}

std::optional<Decimal> to_decimal(const json::Value& value) {
  if (!value.is_number()) {
    return std::nullopt;
  }
  std::string text = json::dump(value);
  Decimal out;
  if (text[0] == '-') {
    out.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string::npos) {
    exponent = std::atoi(text.c_str() + e + 1);
    text.resize(e);
  }
  const std::size_t dot = text.find('.');
  std::string digits = text.substr(0, dot);
  int point = static_cast<int>(digits.size()) + exponent;
  if (dot != std::string::npos) {
    digits += text.substr(dot + 1);
  }
  if (std::abs(exponent) > 400) {
    return std::nullopt;
  }
  if (point < 0) {
    digits.insert(0, static_cast<std::size_t>(-point), '0');
    point = 0;
  }
  if (static_cast<std::size_t>(point) > digits.size()) {
    digits.append(static_cast<std::size_t>(point) - digits.size(), '0');
  }
  out.integer = digits.substr(0, static_cast<std::size_t>(point));
  out.integer.erase(0, std::min(out.integer.find_first_not_of('0'), out.integer.size()));
  out.fraction = digits.substr(static_cast<std::size_t>(point));
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  return out;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.is_zero() && b.is_zero()) {
    return 0;
  }
  const bool a_negative = a.negative && !a.is_zero();
  const bool b_negative = b.negative && !b.is_zero();
  if (a_negative != b_negative) {
    return a_negative ? -1 : 1;
  }
  return a_negative ? magnitude_compare(b, a) : magnitude_compare(a, b);
}

bool in_range(const NumberRange& range, const Decimal& value, bool* known) {
  *known = true;
  if (range.integer && !value.is_integer()) {
    return false;
  }
  if (range.min) {
    const int order = compare(value, *range.min);
    if (order < 0 || (order == 0 && range.min_exclusive)) {
      return false;
    }
  }
  if (range.max) {
    const int order = compare(value, *range.max);
    if (order > 0 || (order == 0 && range.max_exclusive)) {
      return false;
    }
  }
  for (const Decimal& other : range.excluded) {
    if (value == other) {
      return false;
    }
  }
  if (range.multiples_of.empty()) {
    return true;
  }
  NumberRange only;
  only.multiples_of = range.multiples_of;
  const Result<DfaPtr> dfa = number_dfa(only);
  *known = dfa.ok();
  return dfa.ok() && (*dfa)->contains(value.text());
}

Result<DfaPtr> number_dfa(const NumberRange& range) {
  if (range.plain()) {
    static const Result<DfaPtr> kNumber = NumberBuilder(NumberRange{}).build();
    static const Result<DfaPtr> kInteger = [] {
      NumberRange integer;
      integer.integer = true;
      return NumberBuilder(integer).build();
    }();
    return range.integer ? kInteger : kNumber;
  }
  return NumberBuilder(range).build();
}

}  // namespace tandem::grammar
