#include "engine/runtime/step_loop.h"

#include <algorithm>
#include <utility>

#include "foundation/base/random.h"

namespace tandem::runtime {

scheduler::SchedulerConfig scheduler_config(const EngineOptions& options,
                                            const ForwardSizes& sizes) {
  scheduler::SchedulerConfig config;
  config.n_slots = sizes.n_slots;
  config.n_pages = sizes.n_pages;
  config.page_tokens = sizes.page_tokens;
  config.max_context_tokens = sizes.max_context_tokens;
  config.max_step_tokens = sizes.max_step_tokens;
  config.max_logit_rows = sizes.max_logit_rows;
  // submit() guards the queue; what it let in is never refused here.
  config.max_waiting = options.max_waiting + sizes.n_slots + 1'000'000;
  config.prefill_tokens = options.prefill_tokens;
  config.prefill_tokens_busy = options.prefill_tokens_busy;
  config.max_partial_prefills = options.max_partial_prefills;
  config.reserve_new_tokens = options.reserve_new_tokens;
  config.decode_share = options.decode_share;
  config.n_snapshots = options.n_snapshots;
  config.snapshot_interval = options.snapshot_interval;
  return config;
}

namespace {

speculation::DepthOptions depth_options(const EngineOptions& options, const ForwardSizes& sizes) {
  speculation::DepthOptions depth;
  depth.max_drafts =
      std::max(0, std::min({options.max_drafts, sizes.max_drafts, sizes.draft_slack}));
  depth.adaptive = options.adaptive_drafts;
  depth.cost.n_experts = sizes.n_experts;
  depth.cost.top_k = sizes.experts_per_token;
  return depth;
}

}  // namespace

StepLoop::StepLoop(const EngineOptions& options, ForwardModel& model,
                   comm::Communicator& communicator, EventRouter& events, StatsSink stats_sink)
    : options_(options),
      sizes_(model.sizes()),
      clock_(options.clock != nullptr ? *options.clock : system_clock()),
      events_(events),
      control_(communicator),
      executor_(model, options.n_snapshots),
      scheduler_(scheduler_config(options, sizes_)),
      depths_(depth_options(options, sizes_)),
      stats_sink_(std::move(stats_sink)) {
  stats_.kv_pages_total = sizes_.n_pages;
  publish();
}

void StepLoop::add(SequenceId id, GenerationRequest request) {
  scheduler::SequenceSpec spec;
  spec.id = id;
  spec.prompt = std::move(request.prompt);
  spec.max_new_tokens = request.max_tokens;
  spec.priority = request.priority;
  spec.tenant = request.tenant;
  SequenceOptions sequence_options;
  sequence_options.vocab_size = sizes_.vocab;
  sequence_options.think_end_token = options_.think_end_token;
  sequence_options.default_seed = mix64(options_.seed ^ mix64(id));
  const std::vector<TokenId> prompt = spec.prompt;
  const auto most = scheduler_.submit(std::move(spec), clock_.now_us());
  sequence_options.max_new_tokens = most.ok() ? *most : 1;
  auto state = std::make_unique<SequenceState>(id, std::move(request), prompt, sequence_options);
  if (!most.ok()) {
    finish(*state, FinishReason::kError, most.status(), {});
    publish();
    return;
  }
  stats_.prompt_tokens_total += static_cast<std::int64_t>(prompt.size());
  states_.emplace(id, std::move(state));
  publish();
}

void StepLoop::cancel(SequenceId id) {
  const auto found = states_.find(id);
  if (found == states_.end()) {
    return;
  }
  scheduler_.remove(id);
  finish(*found->second, FinishReason::kCancelled, {}, {});
  forget(id);
  publish();
}

void StepLoop::finish(SequenceState& state, FinishReason reason, Status error,
                      GenerationEvent event) {
  switch (reason) {
    case FinishReason::kStop:
      ++stats_.finished_stop_total;
      break;
    case FinishReason::kLength:
      ++stats_.finished_length_total;
      break;
    case FinishReason::kCancelled:
      ++stats_.finished_cancelled_total;
      break;
    case FinishReason::kError:
      ++stats_.finished_error_total;
      break;
  }
  event.sequence = state.id();
  event.finish.emplace();
  event.finish->reason = reason;
  event.finish->error = std::move(error);
  event.finish->usage = state.usage();
  outbox_.push_back(std::move(event));
}

Status StepLoop::step() {
  const TimeUs start = clock_.now_us();
  scheduler::ControlMessage message;
  message.kind = scheduler::MessageKind::kStep;
  message.step = scheduler_.plan(start);
  const scheduler::StepPlan& plan = message.step;
  if (plan.empty()) {
    return idle() ? ok_status() : internal_error("the scheduler has sequences but no plan");
  }
  control_.send(message);
  TANDEM_ASSIGN(const v4::StepOutput out, executor_.run(plan));
  const Results results = sample(plan, out);
  const TimeUs now = clock_.now_us();
  scheduler_.commit(plan, results, now - start, now);
  record_cost(plan, now - start);
  ++stats_.steps_total;
  publish();
  TANDEM_TRY(propose_drafts(plan, results));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].finished) {
      forget(plan.segments[i].sequence);
    }
  }
  return ok_status();
}

StepLoop::Results StepLoop::sample(const scheduler::StepPlan& plan, const v4::StepOutput& out) {
  Results results(plan.segments.size());
  std::size_t logit_row = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const scheduler::PlanSegment& segment = plan.segments[i];
    if (segment.n_logit_rows > 0) {
      sample_segment(segment, out, logit_row, results[i]);
      logit_row += static_cast<std::size_t>(segment.n_logit_rows);
    }
  }
  return results;
}

// A draft is accepted if it is the token that is sampled anyway, so every token is exactly what it
// would have been without speculation.
void StepLoop::sample_segment(const scheduler::PlanSegment& segment, const v4::StepOutput& out,
                              std::size_t first_logit_row, scheduler::SegmentResult& result) {
  SequenceState& state = *states_.at(segment.sequence);
  const std::span<const TokenId> drafts =
      std::span(segment.tokens).last(static_cast<std::size_t>(segment.n_drafts));
  if (state.usage().completion_tokens == 0) {
    state.usage().cached_tokens = scheduler_.cached_tokens(state.id());
    stats_.cached_tokens_total += state.usage().cached_tokens;
  }
  GenerationEvent event;
  event.sequence = state.id();
  Status error;
  std::size_t accepted = 0;
  for (std::size_t i = 0; !state.finished().has_value(); ++i) {
    auto output = state.advance(out.row(first_logit_row + i), sampler_);
    if (!output.ok()) {
      error = output.status().with_context(
          fmt::format("request {}{}", state.request().request_id, i > 0 ? " (draft row)" : ""));
      break;
    }
    result.tokens.push_back(output->token);
    event.tokens.push_back(*std::move(output));
    if (i >= drafts.size() || drafts[i] != result.tokens.back()) {
      break;
    }
    ++accepted;
  }
  const auto n_tokens = static_cast<std::int64_t>(result.tokens.size());
  state.usage().drafted_tokens += segment.n_drafts;
  state.usage().accepted_tokens += static_cast<std::int64_t>(accepted);
  stats_.drafted_tokens_total += segment.n_drafts;
  stats_.accepted_tokens_total += static_cast<std::int64_t>(accepted);
  stats_.generation_tokens_total += n_tokens;
  result.finished = !error.ok() || state.finished().has_value();
  if (forced_.erase(state.id()) == 0 && !result.finished && segment.n_drafts > 0) {
    depths_.record_block(segment.n_drafts, static_cast<std::int32_t>(accepted));
  }
  if (result.finished) {
    const FinishReason reason =
        error.ok() ? state.finished().value_or(FinishReason::kError) : FinishReason::kError;
    finish(state, reason, std::move(error), std::move(event));
  } else {
    outbox_.push_back(std::move(event));
  }
}

Status StepLoop::propose_drafts(const scheduler::StepPlan& plan, const Results& results) {
  std::vector<std::int32_t> rooms;  // of the sequences that may be drafted for
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].finished || results[i].tokens.empty()) {
      continue;
    }
    const SequenceId id = plan.segments[i].sequence;
    if (!states_.at(id)->request().speculate) {
      continue;
    }
    // What a grammar forces needs no drafter and is always accepted.
    const std::int32_t room = scheduler_.draft_room(id, sizes_.draft_slack);
    std::vector<TokenId> forced = states_.at(id)->forced_tokens(room);
    if (!forced.empty()) {
      scheduler_.set_drafts(id, std::move(forced));
      forced_.insert(id);
    } else {
      rooms.push_back(room);
      owners.push_back(i);
    }
  }
  if (depths_.counters().empty()) {
    return ok_status();  // no drafter
  }
  std::vector<std::int32_t> n_drafts(results.size(), 0);
  const std::vector<std::int32_t> depths = depths_.depths(rooms);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    n_drafts[owners[i]] = depths[i];
  }
  return run_drafter(plan, results, n_drafts);
}

Status StepLoop::run_drafter(const scheduler::StepPlan& plan, const Results& results,
                             const std::vector<std::int32_t>& n_drafts) {
  scheduler::ControlMessage message;
  message.kind = scheduler::MessageKind::kDraft;
  std::vector<SequenceId> ids;
  std::int32_t first_row = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const scheduler::PlanSegment& segment = plan.segments[i];
    const auto n_rows = static_cast<std::int32_t>(segment.tokens.size());
    if (!results[i].finished) {
      const auto n_new = static_cast<std::int32_t>(results[i].tokens.size());
      const SequenceState& state = *states_.at(segment.sequence);
      scheduler::DraftSegment draft;
      draft.first_row = first_row;
      draft.n_rows = n_rows - segment.n_drafts + std::max(0, n_new - 1);
      draft.next_token =
          scheduler_.token_at(segment.sequence, segment.first_position + draft.n_rows);
      draft.n_drafts = n_drafts[i];
      draft.next_position = state.next_position();
      draft.temperature = state.request().sampling.temperature;
      draft.seed = state.seed();
      message.draft.segments.push_back(draft);
      ids.push_back(segment.sequence);
    }
    first_row += n_rows;
  }
  if (ids.empty()) {
    return ok_status();
  }
  const TimeUs start = clock_.now_us();
  control_.send(message);
  TANDEM_ASSIGN(v4::DraftOutput out, executor_.draft(message.draft));
  depths_.record_draft(*std::max_element(n_drafts.begin(), n_drafts.end()),
                       static_cast<double>(clock_.now_us() - start));
  take_drafts(ids, std::move(out));
  return ok_status();
}

// Lets the drafts that are worth a row into the next step.
void StepLoop::take_drafts(const std::vector<SequenceId>& ids, v4::DraftOutput out) {
  if (!out.confidences.empty()) {
    const std::vector<std::int32_t> kept = depths_.cut(out.confidences);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out.tokens[i].resize(static_cast<std::size_t>(kept[i]));
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!out.tokens[i].empty()) {
      scheduler_.set_drafts(ids[i], std::move(out.tokens[i]));
    }
  }
}

// Only steps of decode rows say what a draft costs.
void StepLoop::record_cost(const scheduler::StepPlan& plan, TimeUs step_us) {
  const bool decode_only = std::all_of(
      plan.segments.begin(), plan.segments.end(), [](const scheduler::PlanSegment& segment) {
        return static_cast<std::size_t>(segment.n_logit_rows) == segment.tokens.size();
      });
  if (decode_only) {
    depths_.record_step(plan.n_rows(), static_cast<double>(step_us));
  }
}

void StepLoop::heartbeat() {
  control_.send({});
  control_.roll_call();
}

void StepLoop::shutdown() {
  scheduler::ControlMessage message;
  message.kind = scheduler::MessageKind::kShutdown;
  control_.send(message);
}

void StepLoop::publish() {
  const scheduler::SchedulerCounters counters = scheduler_.counters();
  stats_.running = counters.running;
  stats_.waiting = counters.waiting;
  stats_.preemptions_total = counters.preemptions;
  stats_.kv_pages_used = counters.pages_used;
  stats_.drafted_by_position.clear();
  stats_.accepted_by_position.clear();
  for (const speculation::PositionCounters& position : depths_.counters()) {
    stats_.drafted_by_position.push_back(position.drafted);
    stats_.accepted_by_position.push_back(position.accepted);
  }
  stats_sink_(stats_);
  for (GenerationEvent& event : outbox_) {
    events_.send(std::move(event));
  }
  outbox_.clear();
}

}  // namespace tandem::runtime
