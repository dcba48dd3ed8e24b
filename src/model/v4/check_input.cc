// What forward() and draft() accept. A step that would read or write outside its buffers is refused
// before anything runs, so that ranks cannot come apart half way.
#include <vector>

#include "model/v4/model_state.h"

namespace tandem::v4 {
namespace {

Status check_token(TokenId token, std::int32_t vocab, const char* what) {
  if (token < 0 || token >= vocab) {
    return invalid_argument("{}: token {} is outside the vocabulary of {}", what, token, vocab);
  }
  return ok_status();
}

Status check_segment(const ModelState& state, const kernels::Segment& segment) {
  if (segment.slot < 0 || segment.slot >= state.limits.n_slots) {
    return invalid_argument("step: slot {} of {}", segment.slot, state.limits.n_slots);
  }
  const Position end = segment.first_position + segment.n_rows;
  if (segment.first_position < 0 || end > state.limits.max_context_tokens) {
    return invalid_argument("step: slot {} runs positions {} to {}, the context has {}",
                            segment.slot, segment.first_position, end,
                            state.limits.max_context_tokens);
  }
  for (std::int64_t page = segment.first_position / kPageTokens; page <= (end - 1) / kPageTokens;
       ++page) {
    if (state.kv_cache->page(segment.slot, page) == cache::kNoPage) {
      return invalid_argument("step: slot {} has no page for positions {} to {}", segment.slot,
                              page * kPageTokens, (page + 1) * kPageTokens - 1);
    }
  }
  return ok_status();
}

Status check_segments(const ModelState& state, const StepInput& input) {
  std::vector<bool> seen(static_cast<std::size_t>(state.limits.n_slots), false);
  std::int32_t next_row = 0;
  for (const kernels::Segment& segment : input.segments) {
    if (segment.first_row != next_row || segment.n_rows < 1) {
      return invalid_argument("step: a segment of {} rows starts at row {}, expected row {}",
                              segment.n_rows, segment.first_row, next_row);
    }
    next_row += segment.n_rows;
    TANDEM_TRY(check_segment(state, segment));
    const auto slot = static_cast<std::size_t>(segment.slot);
    if (seen[slot]) {
      return invalid_argument("step: slot {} has two segments", segment.slot);
    }
    seen[slot] = true;
  }
  if (next_row != static_cast<std::int32_t>(input.tokens.size())) {
    return invalid_argument("step: segments cover {} of {} tokens", next_row, input.tokens.size());
  }
  return ok_status();
}

Status check_logit_rows(const ModelState& state, const StepInput& input) {
  if (static_cast<std::int64_t>(input.logit_rows.size()) > state.limits.max_logit_rows) {
    return invalid_argument("step: {} rows want logits, the limit is {}", input.logit_rows.size(),
                            state.limits.max_logit_rows);
  }
  std::int32_t previous = -1;
  for (const std::int32_t row : input.logit_rows) {
    if (row <= previous || row >= static_cast<std::int32_t>(input.tokens.size())) {
      return invalid_argument("step: logit row {} after {} in a step of {} rows", row, previous,
                              input.tokens.size());
    }
    previous = row;
  }
  return ok_status();
}

const kernels::Segment* segment_of(const StepInput& input, std::int32_t row) {
  for (const kernels::Segment& segment : input.segments) {
    if (row >= segment.first_row && row < segment.first_row + segment.n_rows) {
      return &segment;
    }
  }
  return nullptr;
}

}  // namespace

Status check_step(const ModelState& state, const StepInput& input) {
  if (input.tokens.empty()) {
    return invalid_argument("step: no tokens");
  }
  if (static_cast<std::int64_t>(input.tokens.size()) > state.limits.max_step_tokens) {
    return invalid_argument("step: {} tokens, the limit is {}", input.tokens.size(),
                            state.limits.max_step_tokens);
  }
  for (const TokenId token : input.tokens) {
    TANDEM_TRY(check_token(token, state.dims.vocab, "step"));
  }
  TANDEM_TRY(check_segments(state, input));
  return check_logit_rows(state, input);
}

Status check_draft(const ModelState& state, std::span<const DraftSequence> sequences) {
  if (state.draft_kind == DraftKind::kNone) {
    return failed_precondition("draft: the checkpoint has no MTP block and no DSpark stages");
  }
  if (!state.may_draft) {
    return failed_precondition("draft: needs a forward() before it, once each");
  }
  std::int32_t next_row = 0;
  for (const DraftSequence& sequence : sequences) {
    const kernels::Segment* segment = segment_of(state.last, sequence.first_row);
    const std::int32_t end = sequence.first_row + sequence.n_rows;
    if (segment == nullptr || sequence.first_row < next_row || sequence.n_rows < 1 ||
        end > segment->first_row + segment->n_rows) {
      return invalid_argument("draft: rows {} to {} do not lie in one segment of the last step",
                              sequence.first_row, end);
    }
    if (sequence.n_drafts < 0 || sequence.n_drafts > max_drafts(state)) {
      return invalid_argument("draft: {} drafts, the limit is {}", sequence.n_drafts,
                              max_drafts(state));
    }
    TANDEM_TRY(check_token(sequence.next_token, state.dims.vocab, "draft"));
    next_row = segment->first_row + segment->n_rows;
  }
  return ok_status();
}

}  // namespace tandem::v4
