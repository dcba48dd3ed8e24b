// Workspace: every activation of a forward pass, allocated once for the largest step.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/device/device.h"
#include "foundation/base/status.h"
#include "model/v4/dims.h"
#include "model/v4/model.h"

namespace tandem::v4 {

struct Workspace {
  // Of the pass in hand: a main step or a draft pass.
  device::Buffer tokens;     // [rows] TokenId
  device::Buffer segments;   // [n_slots] Segment
  device::Buffer chosen;     // [logit_rows] row numbers for the head
  device::Buffer tokens_in;  // the same three as the host writes them; kernels that read them there
  device::Buffer segments_in;  // again and again would cross the bus each time
  device::Buffer chosen_in;
  device::Buffer x;             // [rows, hidden] sub-layer input after the norm
  device::Buffer post;          // [rows, hc_mult]
  device::Buffer comb;          // [rows, hc_mult, hc_mult]
  device::Buffer qr;            // [rows, q_lora]
  device::Buffer q;             // [rows, n_heads, 512]
  device::Buffer kv;            // [rows, 512]
  device::Buffer ckv;           // [rows, 1024] compressor values
  device::Buffer cscore;        // [rows, 1024]
  device::Buffer iq;            // [rows, index_heads, 128]
  device::Buffer iw;            // [rows, index_heads]
  device::Buffer selected;      // [rows, index_top_k] int32
  device::Buffer n_selected;    // [rows] int32
  device::Buffer attn_out;      // [rows, n_heads, 512]
  device::Buffer groups;        // [rows, n_groups, o_lora]
  device::Buffer partial;       // [rows, hidden] before and after the all-reduce
  device::Buffer router;        // [rows, n_experts]
  device::Buffer experts;       // [rows, expert_top_k] int32
  device::Buffer weights;       // [rows, expert_top_k]
  device::Buffer head_in;       // [logit_rows, hidden]
  device::Buffer local_logits;  // [logit_rows, vocab_local], only with several ranks
  device::Buffer gathered;      // [tp_size, logit_rows, vocab_local], only with several ranks

  // Kept from forward() for draft().
  device::Buffer streams;  // [rows, hc_mult, hidden]
  device::Buffer logits;   // [max_logit_rows, vocab]
  device::Buffer taps;     // [rows, n_taps, hidden], DSpark

  // Of draft().
  device::Buffer draft_streams;  // [rows, hc_mult, hidden]
  device::Buffer draft_normed;   // [rows, hc_mult, hidden] MTP; [rows, hidden] DSpark main_x
  device::Buffer draft_embed;    // [rows, hidden] MTP
  device::Buffer draft_added;    // [rows, hidden] MTP
  device::Buffer draft_hidden;   // [draft_rows, hidden] DSpark, collapsed
  device::Buffer draft_logits;   // [draft_rows, vocab]
  device::Buffer markov;         // [n_slots, markov_rank]
  device::Buffer markov_logits;  // [n_slots, vocab]
  device::Buffer confidence;     // [2, n_slots]
};

// One buffer of the plan.
struct WorkspaceBuffer {
  device::Buffer Workspace::*buffer;
  std::int64_t bytes = 0;
  const char* label = "";
  bool shared = false;  // the host writes or reads it too
};

// Rows of the largest pass: a full step, or a DSpark draft pass over all slots.
std::int32_t workspace_rows(const Dims& dims, const ModelLimits& limits, DraftKind draft);

// Rows with logits of one draft pass over all slots.
std::int32_t draft_logit_rows(const Dims& dims, const ModelLimits& limits, DraftKind draft);

// All buffers with their sizes; those with 0 bytes are not needed.
std::vector<WorkspaceBuffer> plan_workspace(const Dims& dims, const ModelLimits& limits,
                                            DraftKind draft);

Result<Workspace> allocate_workspace(device::Device& device, const Dims& dims,
                                     const ModelLimits& limits, DraftKind draft);

}  // namespace tandem::v4
