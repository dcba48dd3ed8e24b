#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "foundation/base/check.h"

namespace tandem::scheduler {

Status SchedulerConfig::validate() const {
  struct Least {
    const char* name;
    std::int64_t found;
    std::int64_t least;
  };
  const Least fields[] = {
      {"n_slots", n_slots, 1},
      {"n_pages", n_pages, 1},
      {"page_tokens", page_tokens, 1},
      {"max_context_tokens", max_context_tokens, 2},
      {"max_step_tokens", max_step_tokens, n_slots},
      {"max_logit_rows", max_logit_rows, n_slots},
      {"max_waiting", max_waiting, 1},
      {"prefill_tokens", prefill_tokens, 1},
      {"prefill_tokens_busy", prefill_tokens_busy, 1},
      {"max_partial_prefills", max_partial_prefills, 1},
      {"reserve_new_tokens", reserve_new_tokens, 1},
      {"max_prefill_pause_us", max_prefill_pause_us, 1},
      {"n_snapshots", n_snapshots, 0},
      {"snapshot_interval", snapshot_interval, 1},
      {"aging_us", aging_us, 1},
  };
  for (const Least& field : fields) {
    if (field.found < field.least) {
      return invalid_argument("scheduler: {} is {}, expected at least {}", field.name, field.found,
                              field.least);
    }
  }
  if (!(decode_share >= 0.0 && decode_share < 1.0)) {
    return invalid_argument("scheduler: decode_share is {}, expected 0 <= share < 1", decode_share);
  }
  return ok_status();
}

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config),
      pages_(config.n_pages),
      prefixes_(config.page_tokens, config.n_snapshots, pages_),
      slots_(config.n_slots),
      pacer_(config.decode_share, config.max_prefill_pause_us) {
  TANDEM_CHECK(config.validate().ok(), config.validate().message());
}

std::int64_t Scheduler::pages_for(std::int64_t n_tokens) const {
  return (n_tokens + config_.page_tokens - 1) / config_.page_tokens;
}

Scheduler::Iterator Scheduler::find(std::list<Sequence>& sequences, SequenceId id) {
  return std::find_if(sequences.begin(), sequences.end(),
                      [id](const Sequence& sequence) { return sequence.spec.id == id; });
}

Result<std::int64_t> Scheduler::submit(SequenceSpec spec, TimeUs now) {
  const auto n_prompt = static_cast<std::int64_t>(spec.prompt.size());
  const std::int64_t limit =
      std::min(config_.max_context_tokens, config_.n_pages * config_.page_tokens);
  if (n_prompt == 0) {
    return invalid_argument("the prompt is empty; it needs at least one token");
  }
  if (n_prompt >= limit) {
    return invalid_argument("the prompt has {} tokens; at most {} leave room for an answer",
                            n_prompt, limit - 1);
  }
  if (static_cast<std::int64_t>(waiting_.size()) >= config_.max_waiting) {
    return resource_exhausted("{} requests are waiting already; try again later", waiting_.size());
  }
  Sequence sequence;
  sequence.tokens = spec.prompt;
  const std::int64_t room = limit - n_prompt;
  const std::int64_t wanted = spec.max_new_tokens < 0 ? room : spec.max_new_tokens;
  sequence.max_length = n_prompt + std::clamp<std::int64_t>(wanted, 1, room);
  sequence.spec = std::move(spec);
  sequence.arrival = n_arrivals_++;
  sequence.submitted_us = now;
  join_tenant(sequence.spec.tenant);
  waiting_.push_back(std::move(sequence));
  return waiting_.back().max_length - n_prompt;
}

// A tenant that was away starts level with the least served one: no credit is saved up.
void Scheduler::join_tenant(const std::string& name) {
  double least = std::numeric_limits<double>::max();
  for (const auto& entry : tenants_) {
    least = std::min(least, entry.second.service);
  }
  const bool first = tenants_.empty();
  const auto added = tenants_.try_emplace(name);
  if (added.second && !first) {
    added.first->second.service = least;
  }
  ++added.first->second.n_sequences;
}

void Scheduler::leave_tenant(const std::string& name) {
  const auto found = tenants_.find(name);
  if (--found->second.n_sequences == 0) {
    tenants_.erase(found);
  }
}

bool Scheduler::remove(SequenceId id) {
  const auto waiting = find(waiting_, id);
  if (waiting != waiting_.end()) {
    leave_tenant(waiting->spec.tenant);
    waiting_.erase(waiting);
    return true;
  }
  const auto running = find(running_, id);
  if (running == running_.end()) {
    return false;
  }
  release(*running);
  leave_tenant(running->spec.tenant);
  running_.erase(running);
  return true;
}

bool Scheduler::runs_before(const Sequence& a, const Sequence& b) const {
  if (a.spec.priority != b.spec.priority) {
    return a.spec.priority > b.spec.priority;
  }
  return a.arrival < b.arrival;
}

bool Scheduler::admitted_before(const Sequence& a, const Sequence& b, TimeUs now) const {
  const auto level = [&](const Sequence& s) {
    return s.spec.priority + (now - s.submitted_us) / config_.aging_us;
  };
  if (level(a) != level(b)) {
    return level(a) > level(b);
  }
  if (a.preempted != b.preempted) {
    return a.preempted;
  }
  const double service_a = tenants_.at(a.spec.tenant).service;
  const double service_b = tenants_.at(b.spec.tenant).service;
  if (service_a != service_b) {
    return service_a < service_b;
  }
  return a.arrival < b.arrival;
}

StepPlan Scheduler::plan(TimeUs now) {
  StepPlan plan;
  const bool busy = plan_decodes(plan);
  if (!busy || pacer_.prefill_allowed(now)) {
    plan_prefills(plan, busy, now);
  }
  if (!plan.empty()) {
    std::sort(pending_clears_.begin(), pending_clears_.end());
    plan.cleared_slots = std::exchange(pending_clears_, {});
    plan.saves = std::exchange(pending_saves_, {});
  }
  return plan;
}

bool Scheduler::plan_decodes(StepPlan& plan) {
  const auto n_decoding = std::count_if(running_.begin(), running_.end(),
                                        [](const Sequence& sequence) { return sequence.decoding; });
  // Every running sequence keeps one row; drafts share what is left.
  std::int64_t spare = std::min<std::int64_t>(config_.max_step_tokens - n_decoding,
                                              config_.max_logit_rows - config_.n_slots);
  for (auto sequence = running_.begin(); sequence != running_.end(); ++sequence) {
    if (!sequence->decoding) {
      continue;
    }
    const auto n_drafts =
        std::min<std::int64_t>(spare, static_cast<std::int64_t>(sequence->drafts.size()));
    sequence->drafts.resize(static_cast<std::size_t>(n_drafts));
    if (!grow(sequence, sequence->length() + n_drafts)) {
      break;  // it was the last in order and is waiting again
    }
    spare -= n_drafts;
    add_segment(plan, *sequence, 1);
  }
  return !plan.empty();
}

// Gives the sequence pages for n_tokens. False: it had to be pre-empted itself.
bool Scheduler::grow(Iterator sequence, std::int64_t n_tokens) {
  const std::int64_t missing =
      pages_for(n_tokens) - static_cast<std::int64_t>(sequence->pages.size());
  while (missing > 0 && !prefixes_.make_free(missing)) {
    const auto last = std::prev(running_.end());
    const bool self = last == sequence;
    preempt(last);
    if (self) {
      return false;
    }
  }
  if (missing > 0) {
    const std::vector<PageId> more = *pages_.acquire(missing);
    sequence->pages.insert(sequence->pages.end(), more.begin(), more.end());
  }
  return true;
}

void Scheduler::preempt(Iterator sequence) {
  release(*sequence);
  sequence->preempted = true;
  waiting_.splice(waiting_.begin(), running_, sequence);
  ++n_preemptions_;
}

void Scheduler::release(Sequence& sequence) {
  pages_.release(sequence.pages);
  slots_.release(sequence.slot);
  pending_clears_.push_back(sequence.slot);
  sequence.pages.clear();
  sequence.n_pages_planned = 0;
  sequence.n_computed = 0;
  sequence.slot = -1;
  sequence.decoding = false;
  sequence.last_snapshot = 0;
  sequence.latest_place = {};
  sequence.drafts.clear();
}

void Scheduler::plan_prefills(StepPlan& plan, bool busy, TimeUs now) {
  std::int64_t budget =
      std::min<std::int64_t>(config_.max_step_tokens - plan.n_rows(),
                             busy ? config_.prefill_tokens_busy : config_.prefill_tokens);
  if (budget <= 0) {
    return;
  }
  const std::vector<Iterator> candidates = prefill_candidates(plan, now);
  if (candidates.empty()) {
    return;
  }
  // Equal shares first, then what is left in order.
  const std::int64_t share =
      std::max<std::int64_t>(1, budget / static_cast<std::int64_t>(candidates.size()));
  std::vector<std::int64_t> counts;
  for (const Iterator candidate : candidates) {
    counts.push_back(std::min({share, budget, candidate->remaining()}));
    budget -= counts.back();
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::int64_t more = std::min(budget, candidates[i]->remaining() - counts[i]);
    counts[i] += more;
    budget -= more;
    if (counts[i] > 0) {
      add_segment(plan, *candidates[i], counts[i]);
    }
  }
}

std::vector<Scheduler::Iterator> Scheduler::prefill_candidates(StepPlan& plan, TimeUs now) {
  const auto limit = static_cast<std::size_t>(config_.max_partial_prefills);
  const auto collect = [&] {
    std::vector<Iterator> found;
    for (auto it = running_.begin(); it != running_.end() && found.size() < limit; ++it) {
      if (!it->decoding) {
        found.push_back(it);
      }
    }
    return found;
  };
  std::vector<Iterator> found = collect();
  while (found.size() < limit && admit_next(plan, now)) {
    found = collect();
  }
  return found;
}

// The best waiting sequence or none: smaller ones never overtake it, or it might wait for ever.
bool Scheduler::admit_next(StepPlan& plan, TimeUs now) {
  if (waiting_.empty() || slots_.n_free() == 0) {
    return false;
  }
  const auto best = std::min_element(
      waiting_.begin(), waiting_.end(),
      [&](const Sequence& a, const Sequence& b) { return admitted_before(a, b, now); });
  if (!reserve(plan, *best)) {
    return false;
  }
  const auto place = std::find_if(running_.begin(), running_.end(), [&](const Sequence& sequence) {
    return runs_before(*best, sequence);
  });
  running_.splice(place, waiting_, best);
  return true;
}

// Slot, known prefix and pages for the input and some output.
bool Scheduler::reserve(StepPlan& plan, Sequence& sequence) {
  // At least one token is computed, because its logits are needed.
  PrefixCache::Match match = prefixes_.match(sequence.tokens, sequence.length() - 1);
  for (const PageId page : match.pages) {
    pages_.retain(page);
  }
  const std::int64_t reserved =
      std::min(sequence.length() + config_.reserve_new_tokens, sequence.max_length);
  const std::int64_t missing = pages_for(reserved) - static_cast<std::int64_t>(match.pages.size());
  if (!prefixes_.make_free(missing)) {
    pages_.release(match.pages);
    return false;
  }
  prefixes_.count_hit(match);
  const std::vector<PageId> fresh = *pages_.acquire(missing);
  sequence.pages = std::move(match.pages);
  sequence.pages.insert(sequence.pages.end(), fresh.begin(), fresh.end());
  sequence.slot = *slots_.acquire();
  sequence.n_computed = match.position;
  sequence.last_snapshot = match.position;
  sequence.shared_position = match.shared_position;
  if (!sequence.preempted) {
    sequence.n_cached = match.position;
  }
  // In the same plan, before anything else can take the snapshot's place.
  assign_pages(plan, sequence);
  if (match.position > 0) {
    plan.restores.push_back({sequence.slot, match.position, match.snapshot});
  }
  return true;
}

void Scheduler::assign_pages(StepPlan& plan, Sequence& sequence) {
  if (sequence.n_pages_planned == sequence.pages.size()) {
    return;
  }
  PageAssignment assignment;
  assignment.slot = sequence.slot;
  assignment.first_entry = static_cast<std::int64_t>(sequence.n_pages_planned);
  assignment.pages.assign(
      sequence.pages.begin() + static_cast<std::ptrdiff_t>(sequence.n_pages_planned),
      sequence.pages.end());
  sequence.n_pages_planned = sequence.pages.size();
  plan.assignments.push_back(std::move(assignment));
}

// The last page border that a later sequence with the same tokens could resume from.
Position Scheduler::prompt_border(const Sequence& sequence) const {
  return (sequence.length() - 1) / config_.page_tokens * config_.page_tokens;
}

// Cuts a chunk where a snapshot is wanted, else, if it does not reach the end of the tokens, at a
// page border.
std::int64_t Scheduler::prefill_end(const Sequence& sequence, std::int64_t n_tokens) const {
  const std::int64_t end = sequence.n_computed + n_tokens;
  if (prefixes_.enabled()) {
    for (const Position wanted : {sequence.shared_position, prompt_border(sequence)}) {
      if (wanted > sequence.n_computed && wanted < end) {
        return wanted;
      }
    }
  }
  const std::int64_t border = end / config_.page_tokens * config_.page_tokens;
  return end < sequence.length() && border > sequence.n_computed ? border : end;
}

// Makes what a sequence has computed known, if it stands at a border worth keeping. The rows are
// saved by the next plan, before anything can overwrite them.
void Scheduler::keep_snapshot(Sequence& sequence, Position before, bool decoded) {
  const Position border = sequence.n_computed / config_.page_tokens * config_.page_tokens;
  if (!prefixes_.enabled() || border <= before) {
    return;
  }
  if (!decoded) {
    const bool wanted = border == sequence.shared_position || border == prompt_border(sequence) ||
                        border - sequence.last_snapshot >= config_.snapshot_interval;
    if (border != sequence.n_computed || !wanted) {
      return;
    }
  }
  const auto place = prefixes_.insert(sequence.tokens, border, sequence.pages);
  sequence.last_snapshot = border;
  if (!place.has_value()) {
    return;
  }
  pending_saves_.push_back({sequence.slot, border, place->snapshot});
  if (decoded) {
    // The next turn resumes from the newest border of an answer, not from those on the way.
    prefixes_.drop_if_unused(std::exchange(sequence.latest_place, *place));
  }
}

void Scheduler::add_segment(StepPlan& plan, Sequence& sequence, std::int64_t n_tokens) {
  assign_pages(plan, sequence);
  const std::int64_t end = prefill_end(sequence, n_tokens);
  PlanSegment segment;
  segment.sequence = sequence.spec.id;
  segment.slot = sequence.slot;
  segment.first_position = sequence.n_computed;
  segment.tokens.assign(sequence.tokens.begin() + sequence.n_computed,
                        sequence.tokens.begin() + end);
  if (end == sequence.length()) {
    segment.tokens.insert(segment.tokens.end(), sequence.drafts.begin(), sequence.drafts.end());
    segment.n_drafts = static_cast<std::int32_t>(sequence.drafts.size());
    segment.n_logit_rows = 1 + segment.n_drafts;
  }
  sequence.drafts.clear();
  plan.segments.push_back(std::move(segment));
}

void Scheduler::commit(const StepPlan& plan, std::span<const SegmentResult> results, TimeUs step_us,
                       TimeUs now) {
  TANDEM_CHECK(results.size() == plan.segments.size(), "one result per segment");
  bool had_decode = false;
  bool had_prefill = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PlanSegment& segment = plan.segments[i];
    const SegmentResult& result = results[i];
    const auto sequence = find(running_, segment.sequence);
    TANDEM_CHECK(sequence != running_.end(), "a planned sequence is running until commit");
    TANDEM_CHECK(result.tokens.empty() == (segment.n_logit_rows == 0) || result.finished,
                 "rows with logits give at least one token, others none");
    const auto n_rows = static_cast<std::int64_t>(segment.tokens.size());
    const auto n_new = static_cast<std::int64_t>(result.tokens.size());
    tenants_.at(sequence->spec.tenant).service += static_cast<double>(n_rows);
    const bool decoded = sequence->decoding;
    (decoded ? had_decode : had_prefill) = true;
    const Position before = sequence->n_computed;
    // Rows of rejected drafts do not count.
    sequence->n_computed += n_rows - segment.n_drafts + std::max<std::int64_t>(0, n_new - 1);
    sequence->tokens.insert(sequence->tokens.end(), result.tokens.begin(), result.tokens.end());
    sequence->decoding = n_new > 0;
    keep_snapshot(*sequence, before, decoded);
    if (result.finished) {
      remove(segment.sequence);
    } else {
      TANDEM_CHECK(sequence->length() <= sequence->max_length, "a sequence outgrew its limit");
    }
  }
  pacer_.record(had_decode, had_prefill, step_us, now);
}

const Scheduler::Sequence* Scheduler::find_running(SequenceId id) const {
  const auto found = std::find_if(running_.begin(), running_.end(), [id](const Sequence& sequence) {
    return sequence.spec.id == id;
  });
  return found == running_.end() ? nullptr : &*found;
}

std::int64_t Scheduler::cached_tokens(SequenceId id) const {
  const Sequence* sequence = find_running(id);
  TANDEM_CHECK(sequence != nullptr, "only running sequences know what was cached");
  return sequence->n_cached;
}

TokenId Scheduler::token_at(SequenceId id, Position position) const {
  const Sequence* sequence = find_running(id);
  TANDEM_CHECK(sequence != nullptr && position >= 0 && position < sequence->length(),
               "only tokens of running sequences can be asked for");
  return sequence->tokens[static_cast<std::size_t>(position)];
}

std::int32_t Scheduler::draft_room(SequenceId id, std::int32_t wanted) const {
  const Sequence* sequence = find_running(id);
  if (sequence == nullptr || !sequence->decoding) {
    return 0;
  }
  // n drafts give up to n + 1 tokens.
  const std::int64_t useful = sequence->max_length - sequence->length() - 1;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(useful, 0, wanted));
}

void Scheduler::set_drafts(SequenceId id, std::vector<TokenId> drafts) {
  const auto sequence = find(running_, id);
  TANDEM_CHECK(sequence != running_.end() && sequence->decoding,
               "only a decoding sequence has drafts");
  const std::int32_t room = draft_room(id, static_cast<std::int32_t>(drafts.size()));
  drafts.resize(static_cast<std::size_t>(room));
  sequence->drafts = std::move(drafts);
}

SchedulerCounters Scheduler::counters() const {
  SchedulerCounters counters;
  counters.running = static_cast<std::int64_t>(running_.size());
  counters.waiting = static_cast<std::int64_t>(waiting_.size());
  counters.preemptions = n_preemptions_;
  counters.pages_used = pages_.n_used();
  counters.pages_cached = prefixes_.n_nodes();
  return counters;
}

}  // namespace tandem::scheduler
