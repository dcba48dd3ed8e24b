// The TokenConstraint of a compiled grammar.
#include <algorithm>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "engine/grammar/grammar.h"
#include "engine/grammar/machine.h"
#include "foundation/base/check.h"

namespace tandem::grammar {
namespace {

constexpr int kRenewEvery = 64;  // tokens between looks at the size of the space
constexpr std::size_t kMaxForcedBytes = 4096;

enum class Phase : std::uint8_t { kThinking, kFree, kGrammar, kEnded };

struct Place {
  Phase phase = Phase::kFree;
  bool after_less = false;  // free text that ends in "<", where the DSML marker may follow
  StateId state = kDeadState;
  std::shared_ptr<StateSpace> space;
};

class Matcher final : public TokenConstraint {
 public:
  Matcher(GrammarPtr grammar, bool starts_in_thinking) : grammar_(std::move(grammar)) {
    if (starts_in_thinking) {
      here_.phase = Phase::kThinking;
    } else {
      begin_answer();
    }
  }

  bool fill_mask(std::span<std::uint32_t> mask) override;
  bool accept(TokenId token) override;
  void rollback(int n_tokens) override;
  std::vector<TokenId> forced_tokens(int max) const override;
  bool is_finished() const override;

  std::unique_ptr<TokenConstraint> clone() const override {
    return std::make_unique<Matcher>(*this);
  }

 private:
  Machine& machine() const { return *grammar_->machine(); }

  const Vocabulary& vocabulary() const { return machine().vocabulary(); }

  void begin_answer();
  void enter_grammar();
  bool move(TokenId token);
  bool move_free(TokenId token);
  bool move_grammar(TokenId token);
  void allow_eos(std::span<std::uint32_t> mask) const;

  GrammarPtr grammar_;
  Place here_;
  std::vector<Place> history_;
  int since_renewal_ = 0;
};

void Matcher::begin_answer() {
  if (machine().mode() == EntryMode::kImmediate) {
    enter_grammar();
  } else {
    here_ = {};
  }
}

void Matcher::enter_grammar() {
  here_.phase = Phase::kGrammar;
  here_.space = machine().space();
  here_.state = here_.space->start();
}

void Matcher::allow_eos(std::span<std::uint32_t> mask) const {
  for (const TokenId eos : vocabulary().roles().eos) {
    mask[static_cast<std::size_t>(eos) / 32] |= 1U << (eos % 32);
  }
}

bool Matcher::fill_mask(std::span<std::uint32_t> mask) {
  TANDEM_CHECK(mask.size() == vocabulary().mask_words(), "a mask of ceil(vocab / 32) words");
  if (here_.phase == Phase::kThinking || here_.phase == Phase::kFree) {
    const bool free = here_.phase == Phase::kFree;
    const bool dsml = free && here_.after_less && machine().mode() == EntryMode::kTriggered;
    const std::vector<std::uint32_t>& from = machine().free_mask(free, dsml);
    std::copy(from.begin(), from.end(), mask.begin());
    return true;
  }
  if (here_.phase == Phase::kEnded) {
    std::fill(mask.begin(), mask.end(), 0U);
    allow_eos(mask);
    return true;
  }
  const std::lock_guard<std::mutex> lock(here_.space->mutex());
  here_.space->fill_mask(here_.state, mask);
  if (here_.space->accepting(here_.state)) {
    allow_eos(mask);
  }
  return true;
}

bool Matcher::accept(TokenId token) {
  if (token < 0 || token >= vocabulary().size()) {
    return false;
  }
  Place before = here_;
  if (!move(token)) {
    return false;
  }
  history_.push_back(std::move(before));
  if (history_.size() >= 2 * kMaxRollback) {
    history_.erase(history_.begin(), history_.begin() + kMaxRollback);
  }
  if (here_.phase == Phase::kGrammar && ++since_renewal_ >= kRenewEvery) {
    since_renewal_ = 0;
    machine().renew(&here_.space, &here_.state);
  }
  return true;
}

bool Matcher::move(TokenId token) {
  if (vocabulary().is_eos(token)) {
    if (here_.phase == Phase::kThinking) {
      return false;
    }
    if (here_.phase == Phase::kGrammar) {
      const std::lock_guard<std::mutex> lock(here_.space->mutex());
      if (!here_.space->accepting(here_.state)) {
        return false;
      }
    }
    here_.phase = Phase::kEnded;
    return true;
  }
  switch (here_.phase) {
    case Phase::kThinking:
      if (token == vocabulary().roles().dsml) {
        return false;
      }
      if (token == vocabulary().roles().think_end) {
        begin_answer();
      }
      return true;
    case Phase::kFree:
      return move_free(token);
    case Phase::kGrammar:
      return move_grammar(token);
    case Phase::kEnded:
      break;
  }
  return false;
}

bool Matcher::move_free(TokenId token) {
  if (token == vocabulary().roles().dsml) {
    if (!here_.after_less || machine().mode() != EntryMode::kTriggered) {
      return false;
    }
    enter_grammar();
    return true;
  }
  const std::string_view bytes = vocabulary().bytes(token);
  here_.after_less = !bytes.empty() && bytes.back() == '<';
  return true;
}

bool Matcher::move_grammar(TokenId token) {
  const std::lock_guard<std::mutex> lock(here_.space->mutex());
  StateId next = kDeadState;
  if (token == vocabulary().roles().dsml) {
    next = here_.space->step_special(here_.state, Role::kDsml);
  } else if (!vocabulary().bytes(token).empty()) {
    next = here_.space->step_token(here_.state, vocabulary().bytes(token));
  }
  if (next == kDeadState) {
    return false;
  }
  here_.state = next;
  return true;
}

void Matcher::rollback(int n_tokens) {
  TANDEM_CHECK(n_tokens >= 0 && static_cast<std::size_t>(n_tokens) <= history_.size(),
               "rollback over more tokens than were accepted");
  if (n_tokens == 0) {
    return;
  }
  here_ = std::move(history_[history_.size() - static_cast<std::size_t>(n_tokens)]);
  history_.resize(history_.size() - static_cast<std::size_t>(n_tokens));
}

std::vector<TokenId> Matcher::forced_tokens(int max) const {
  std::vector<TokenId> out;
  if (here_.phase != Phase::kGrammar) {
    return out;
  }
  const std::lock_guard<std::mutex> lock(here_.space->mutex());
  StateId state = here_.state;
  std::string text;
  // Greedy tokens of the forced text. The last one is left out if the text may go on differently.
  const auto flush = [&](bool complete) {
    std::string_view rest = text;
    while (!rest.empty() && static_cast<int>(out.size()) < max) {
      const TokenId token = vocabulary().longest_prefix(rest);
      if (token < 0) {
        return false;
      }
      rest.remove_prefix(vocabulary().bytes(token).size());
      if (rest.empty() && !complete) {
        return false;
      }
      out.push_back(token);
    }
    text.clear();
    return static_cast<int>(out.size()) < max;
  };
  while (text.size() < kMaxForcedBytes) {
    const int byte = here_.space->only_byte(state);
    if (byte >= 0) {
      text.push_back(static_cast<char>(byte));
      state = here_.space->step(state, static_cast<std::uint8_t>(byte));
      continue;
    }
    const bool only_marker = !here_.space->accepting(state) && here_.space->only_special(state);
    const bool ended = here_.space->accepting(state) && !here_.space->can_continue(state);
    if (!flush(only_marker || ended) || !only_marker) {
      return out;
    }
    out.push_back(vocabulary().roles().dsml);
    state = here_.space->step_special(state, Role::kDsml);
  }
  flush(false);
  return out;
}

bool Matcher::is_finished() const {
  if (here_.phase != Phase::kGrammar) {
    return here_.phase == Phase::kEnded;
  }
  const std::lock_guard<std::mutex> lock(here_.space->mutex());
  return here_.space->accepting(here_.state) && !here_.space->can_continue(here_.state);
}

}  // namespace

CompiledGrammar::CompiledGrammar(std::shared_ptr<Machine> machine,
                                 std::vector<Unenforced> unenforced)
    : machine_(std::move(machine)), unenforced_(std::move(unenforced)) {}

CompiledGrammar::~CompiledGrammar() = default;

std::unique_ptr<TokenConstraint> make_constraint(const GrammarPtr& grammar,
                                                 const ConstraintOptions& options) {
  return std::make_unique<Matcher>(grammar, options.starts_in_thinking);
}

// Most recently used first.
struct GrammarCache::State {
  using Entries = std::list<std::pair<std::string, GrammarPtr>>;

  std::mutex mutex;
  std::size_t max_entries = 0;
  Entries entries;
  std::unordered_map<std::string, Entries::iterator> by_key;
};

GrammarCache::GrammarCache(std::size_t max_entries) : state_(std::make_unique<State>()) {
  state_->max_entries = std::max<std::size_t>(max_entries, 1);
}

GrammarCache::~GrammarCache() = default;

GrammarPtr GrammarCache::find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto it = state_->by_key.find(key);
  if (it == state_->by_key.end()) {
    return nullptr;
  }
  state_->entries.splice(state_->entries.begin(), state_->entries, it->second);
  return it->second->second;
}

void GrammarCache::insert(const std::string& key, GrammarPtr grammar) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->by_key.count(key) != 0) {
    return;
  }
  state_->entries.emplace_front(key, std::move(grammar));
  state_->by_key[key] = state_->entries.begin();
  if (state_->entries.size() > state_->max_entries) {
    state_->by_key.erase(state_->entries.back().first);
    state_->entries.pop_back();
  }
}

}  // namespace tandem::grammar
