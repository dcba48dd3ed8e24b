// V4Model: one rank's weights, caches and workspace, and the forward pass over a step's rows.
// No policy: which rows run, in which slots and pages, is the caller's plan.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/kernels/step_rows.h"
#include "foundation/base/ids.h"

namespace tandem::v4 {

// What one forward pass runs. Plain data; the same on every rank.
struct StepInput {
  std::vector<TokenId> tokens;                 // [n_tokens]
  std::vector<kernels::Segment> segments;      // cover the tokens, see StepRows
  std::vector<std::int32_t> logit_rows;        // rows whose logits are wanted, ascending
};

// Sizes that are fixed at start; memory is planned from them (architecture decision 10).
struct ModelLimits {
  std::int32_t max_step_tokens = 512;   // rows of one forward pass
  std::int32_t max_logit_rows = 64;     // rows with logits of one pass
  std::int32_t n_slots = 8;             // sequences with live state
  std::int64_t max_context_tokens = 0;  // longest sequence
  std::int64_t n_pages = 0;             // pages of page_tokens tokens, shared by all sequences
  std::int32_t draft_slack = 8;         // rows that may be rolled back at once
};

// Tokens per page of compressed rows: the least that holds whole windows of both ratios.
constexpr std::int32_t kPageTokens = 128;

}  // namespace tandem::v4
