// Experts, grouped so that each expert's weights are read once per step. model.md 2.11.
//
// First half: gate and up of every (token, expert) pair, then SwiGLU. Second half: w2; one work
// item owns a block of outputs for all tokens and adds the experts in rising order of id, the
// shared one last, so a token's sum does not depend on its neighbours.
#include <algorithm>
#include <vector>

#include "compute/cpu/fast/fast_ops.h"
#include "compute/cpu/fast/product.h"
#include "compute/cpu/fast/simd_rows.h"
#include "foundation/base/check.h"

namespace tandem::cpu::fast {
namespace {

using kernels::ExpertsArgs;
using tensor::WeightMatrix;

void plan_first_half(const Context& context, ExpertPlan& plan) {
  plan.items.clear();
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const ExpertGroup& group = plan.groups[g];
    const std::int64_t block = output_block(context, group.w1.rows, group.n_pairs);
    for (std::int64_t first = 0; first < group.w1.rows; first += block) {
      plan.items.push_back(
          {static_cast<std::int64_t>(g), first, std::min(block, group.w1.rows - first)});
    }
  }
}

// hidden[pair, first..] = weight * silu(gate) * up for one block of one group.
void gate_up(Context& context, const ExpertsArgs& args, const ExpertPlan& plan,
             const ExpertItem& item, const std::vector<const float*>& inputs, std::int64_t inter,
             float* hidden, ThreadScratch& scratch) {
  const ExpertGroup& group = plan.groups[static_cast<std::size_t>(item.group)];
  scratch.pointers.clear();
  for (std::int64_t i = 0; i < group.n_pairs; ++i) {
    const ExpertPair& pair = plan.pairs[static_cast<std::size_t>(group.first_pair + i)];
    scratch.pointers.push_back(inputs[static_cast<std::size_t>(pair.token)]);
  }
  float* gate = scratch.first.floats(group.n_pairs * item.count);
  float* up = scratch.second.floats(group.n_pairs * item.count);
  multiply_rows(group.w1, item.first, item.count, scratch.pointers.data(), group.n_pairs, gate,
                item.count, scratch.matrix);
  multiply_rows(group.w3, item.first, item.count, scratch.pointers.data(), group.n_pairs, up,
                item.count, scratch.matrix);
  for (std::int64_t i = 0; i < group.n_pairs; ++i) {
    const std::int64_t pair = group.first_pair + i;
    swiglu_row(gate + i * item.count, up + i * item.count, args.swiglu_limit,
               plan.pairs[static_cast<std::size_t>(pair)].weight, item.count, context.native(),
               hidden + pair * inter + item.first);
  }
}

// out[token, first..] = sum over groups, for one block of outputs and all tokens.
void down(const ExpertsArgs& args, const ExpertPlan& plan, std::int64_t first, std::int64_t count,
          const std::vector<const float*>& hidden_rows, ThreadScratch& scratch) {
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    std::fill_n(args.out + t * args.hidden + first, count, 0.0F);
  }
  for (const ExpertGroup& group : plan.groups) {
    float* y = scratch.first.floats(group.n_pairs * count);
    multiply_rows(group.w2, first, count, hidden_rows.data() + group.first_pair, group.n_pairs, y,
                  count, scratch.matrix);
    for (std::int64_t i = 0; i < group.n_pairs; ++i) {
      const ExpertPair& pair = plan.pairs[static_cast<std::size_t>(group.first_pair + i)];
      add_row(y + i * count, count, false, args.out + pair.token * args.hidden + first);
    }
  }
}

// Packed inputs of the second half, each in the format of its own w2.
void pack_hidden(Context& context, const ExpertPlan& plan, std::int64_t inter,
                 const float* hidden) {
  const auto n_pairs = static_cast<std::int64_t>(plan.pairs.size());
  const std::int64_t n_routed = plan.groups.back().first_pair;
  const WeightMatrix& shared = plan.groups.back().w2;
  const WeightMatrix& routed = plan.groups.front().w2;
  const std::int64_t width = std::max(packed_stride(shared.format, shared.cols),
                                      packed_stride(routed.format, routed.cols));
  float* packed = context.inputs.floats(n_pairs * width);
  context.input_rows.resize(static_cast<std::size_t>(n_pairs));
  context.for_each(n_pairs, 4 * inter, [&](std::int64_t i, int thread) {
    const WeightMatrix& w2 = i < n_routed ? routed : shared;
    const float* row = hidden + i * inter;
    if (context.native()) {
      float* copy = context.scratch(thread).first.floats(inter);
      quantise_row(row, w2.cols, 128, copy);
      row = copy;
    }
    pack_row(w2.format, row, w2.cols, packed + i * width);
    context.input_rows[static_cast<std::size_t>(i)] = packed + i * width;
  });
}

}  // namespace

void experts(Context& context, const ExpertsArgs& args) {
  ExpertPlan& plan = context.expert_plan;
  plan.build(args);
  plan_first_half(context, plan);
  const auto n_pairs = static_cast<std::int64_t>(plan.pairs.size());
  const std::int64_t inter = std::max(args.w1.first.rows, args.shared_w1.rows);
  pack_inputs(context, args.x, args.hidden, args.n_tokens, args.w1.first.format, args.hidden,
              context.native(), context.inputs, context.input_rows);
  pack_inputs(context, args.x, args.hidden, args.n_tokens, args.shared_w1.format, args.hidden,
              context.native(), context.inputs_b, context.input_rows_b);

  float* hidden = context.results.floats(n_pairs * inter);
  const auto n_items = static_cast<std::int64_t>(plan.items.size());
  const auto last_group = static_cast<std::int64_t>(plan.groups.size()) - 1;
  context.for_each(n_items, 2 * n_pairs * inter * args.hidden / n_items,
                   [&](std::int64_t i, int thread) {
                     const ExpertItem& item = plan.items[static_cast<std::size_t>(i)];
                     gate_up(context, args, plan, item,
                             item.group == last_group ? context.input_rows_b : context.input_rows,
                             inter, hidden, context.scratch(thread));
                   });

  pack_hidden(context, plan, inter, hidden);
  const std::int64_t block =
      output_block(context, args.hidden, plan.groups.front().n_pairs > 3 ? 4 : args.n_tokens);
  const std::int64_t n_blocks = (args.hidden + block - 1) / block;
  context.for_each(n_blocks, n_pairs * inter * block, [&](std::int64_t i, int thread) {
    const std::int64_t first = i * block;
    down(args, plan, first, std::min<std::int64_t>(block, args.hidden - first), context.input_rows,
         context.scratch(thread));
  });
}

}  // namespace tandem::cpu::fast
