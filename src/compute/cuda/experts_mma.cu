// SOURCE: model.md 2.11, traps T32-T34.
//
// Routed experts run over tiles of rows of one expert, the shared expert over all rows: gate and up
// products and SwiGLU into hidden rows, quantisation of those, then w2. A last kernel adds a
// token's results in rising order of expert id, the shared one last.
#include "compute/cuda/experts_mma.h"

#include "compute/cuda/expert_plan.h"
#include "compute/cuda/mma_matrix.h"
#include "compute/cuda/packed_rows.h"
#include "compute/cuda/plain_matrix.h"
#include "compute/cuda/scratch.h"
#include "compute/cuda/swiglu.h"

namespace tandem::cuda {
namespace {

using kernels::ExpertsArgs;
using kernels::ExpertStack;

// Rows of one block's work. Without a plan: all rows in order, one matrix.
struct Work {
  ExpertPlan plan;
  std::int32_t n_rows = 0;  // without a plan
};

// What one block is to do; n = 0: nothing.
struct Task {
  std::int32_t expert = 0;
  std::int32_t first = 0;
  std::int32_t n = 0;
};

__device__ Task task_of(const Work& work, std::int32_t tile_rows) {
  const auto tile = static_cast<std::int32_t>(blockIdx.y);
  if (work.plan.tiles != nullptr) {
    if (tile >= *work.plan.n_tiles) {
      return {};
    }
    const ExpertTile& found = work.plan.tiles[tile];
    return {found.expert, found.first, found.n};
  }
  const std::int32_t left = work.n_rows - tile * tile_rows;
  return {0, tile * tile_rows, left < tile_rows ? left : tile_rows};
}

// Rows of the task: of token activations, or of hidden rows (one per pair).
__device__ ActivationRows rows_of(const Task& task, const std::uint16_t* packed, std::int64_t cols,
                                  const std::int32_t* list) {
  if (list != nullptr) {
    return {packed, cols, list + task.first, task.n};
  }
  return {packed + task.first * cols, cols, nullptr, task.n};
}

struct HiddenArgs {
  ExpertStack w1, w3;
  const std::uint16_t* x = nullptr;  // packed token rows
  std::int64_t cols = 0;
  const float* weights = nullptr;  // of pairs; nullptr: 1
  float limit = 0;
  float* hidden = nullptr;  // [pairs or rows, inter]
};

__device__ void store_hidden(const HiddenArgs& args, const Work& work, const Task& task, int column,
                             std::int64_t output, float gate, float up) {
  const std::int64_t inter = args.w1.first.rows;
  const std::int32_t place = task.first + column;
  const std::int64_t row = work.plan.pairs != nullptr ? work.plan.pairs[place] : place;
  const float weight = args.weights != nullptr ? args.weights[row] : 1.0F;
  args.hidden[row * inter + output] = gated(true, gate, up, args.limit, weight);
}

template <WeightFormat F, int kOctets>
__global__ void __launch_bounds__(kMmaThreads, 1) few_hidden_kernel(Work work, HiddenArgs args) {
  TANDEM_DYNAMIC_SHARED(float, parts);
  constexpr int kColumns = kOctets * kOctet;
  const Task task = task_of(work, kColumns);
  if (task.n == 0) {
    return;
  }
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.x) * kTileOutputs;
  const ActivationRows x = rows_of(task, args.x, args.cols, work.plan.tokens);
  float* up_parts = parts + kParts * kTileOutputs * kColumns;
  float sums[kOctets][4];
  few_part<F>(expert_of(args.w1, task.expert), first_output, x, 0, sums);
  store_part(sums, parts);
  few_part<F>(expert_of(args.w3, task.expert), first_output, x, 0, sums);
  store_part(sums, up_parts);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTileOutputs * kColumns;
       i += static_cast<int>(kMmaThreads)) {
    const int output = i % kTileOutputs;
    const int column = i / kTileOutputs;
    const int at = output * kColumns + column;
    if (column < task.n && first_output + output < args.w1.first.rows) {
      store_hidden(args, work, task, column, first_output + output,
                   add_parts<kOctets>(parts, at) * sum_scale<F>(),
                   add_parts<kOctets>(up_parts, at) * sum_scale<F>());
    }
  }
}

template <WeightFormat F>
__global__ void __launch_bounds__(kMmaThreads, 1) many_hidden_kernel(Work work, HiddenArgs args) {
  TANDEM_DYNAMIC_SHARED(std::uint8_t, stage);
  const Task task = task_of(work, kManyRows);
  if (task.n == 0) {
    return;
  }
  const std::int64_t first_output =
      static_cast<std::int64_t>(blockIdx.x) * kManyOutputs + warp_id() * kTileOutputs;
  const ActivationRows x = rows_of(task, args.x, args.cols, work.plan.tokens);
  float gates[kManyOctets][4];
  float ups[kManyOctets][4];
  many_sums<F>(expert_of(args.w1, task.expert), first_output, x, 0, stage, gates);
  many_sums<F>(expert_of(args.w3, task.expert), first_output, x, 0, stage, ups);
  TANDEM_UNROLL
  for (int i = 0; i < kManyOctets * 4; ++i) {
    const std::int64_t output = first_output + lane_id() / 4 + i % 4 / 2 * 8;
    const int column = i / 4 * kOctet + lane_id() % 4 * 2 + i % 2;
    if (column < task.n && output < args.w1.first.rows) {
      store_hidden(args, work, task, column, output, gates[i / 4][i % 4] * sum_scale<F>(),
                   ups[i / 4][i % 4] * sum_scale<F>());
    }
  }
}

struct DownArgs {
  ExpertStack w2;
  const std::uint16_t* hidden = nullptr;  // packed, [pairs or rows, inter]
  std::int64_t inter = 0;
  float* out = nullptr;  // [pairs or rows, w2.rows]
};

__device__ float& down_place(const DownArgs& args, const Work& work, const Task& task, int column,
                             std::int64_t output) {
  const std::int32_t place = task.first + column;
  const std::int64_t row = work.plan.pairs != nullptr ? work.plan.pairs[place] : place;
  return args.out[row * args.w2.first.rows + output];
}

template <WeightFormat F, int kOctets>
__global__ void __launch_bounds__(kMmaThreads, 1) few_down_kernel(Work work, DownArgs args) {
  TANDEM_DYNAMIC_SHARED(float, parts);
  constexpr int kColumns = kOctets * kOctet;
  const Task task = task_of(work, kColumns);
  if (task.n == 0) {
    return;
  }
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.x) * kTileOutputs;
  const ActivationRows x = rows_of(task, args.hidden, args.inter, work.plan.pairs);
  float sums[kOctets][4];
  few_part<F>(expert_of(args.w2, task.expert), first_output, x, 0, sums);
  store_part(sums, parts);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTileOutputs * kColumns;
       i += static_cast<int>(kMmaThreads)) {
    const int output = i % kTileOutputs;
    const int column = i / kTileOutputs;
    if (column < task.n && first_output + output < args.w2.first.rows) {
      down_place(args, work, task, column, first_output + output) =
          add_parts<kOctets>(parts, output * kColumns + column) * sum_scale<F>();
    }
  }
}

template <WeightFormat F>
__global__ void __launch_bounds__(kMmaThreads, 1) many_down_kernel(Work work, DownArgs args) {
  TANDEM_DYNAMIC_SHARED(std::uint8_t, stage);
  const Task task = task_of(work, kManyRows);
  if (task.n == 0) {
    return;
  }
  const std::int64_t first_output =
      static_cast<std::int64_t>(blockIdx.x) * kManyOutputs + warp_id() * kTileOutputs;
  const ActivationRows x = rows_of(task, args.hidden, args.inter, work.plan.pairs);
  float sums[kManyOctets][4];
  many_sums<F>(expert_of(args.w2, task.expert), first_output, x, 0, stage, sums);
  TANDEM_UNROLL
  for (int i = 0; i < kManyOctets * 4; ++i) {
    const std::int64_t output = first_output + lane_id() / 4 + i % 4 / 2 * 8;
    const int column = i / 4 * kOctet + lane_id() % 4 * 2 + i % 2;
    if (column < task.n && output < args.w2.first.rows) {
      down_place(args, work, task, column, output) = sums[i / 4][i % 4] * sum_scale<F>();
    }
  }
}

__global__ void combine_kernel(const std::int32_t* experts, std::int32_t top_k, std::int64_t hidden,
                               const float* routed, const float* shared, float* out) {
  const std::int64_t t = blockIdx.y;
  const std::int64_t d = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (d >= hidden) {
    return;
  }
  float sum = 0;
  std::int32_t last = -1;
  for (std::int32_t n = 0; n < top_k; ++n) {
    const std::int32_t slot = next_slot(experts + t * top_k, top_k, last);
    last = experts[t * top_k + slot];
    sum += routed[(t * top_k + slot) * hidden + d];
  }
  out[t * hidden + d] = sum + shared[t * hidden + d];
}

constexpr std::size_t few_shared(int octets, int n_products) {
  return sizeof(float) * kParts * kTileOutputs *
         static_cast<std::size_t>(octets * kOctet * n_products);
}

// Rows that share one read of an expert: by how many tokens there are, since that decides how many
// rows an expert gets. The bits are the same.
enum class TileKind { kFew8, kFew32, kMany };

TileKind tile_kind(std::int32_t n_tokens) {
  return n_tokens <= 128 ? TileKind::kFew8 : n_tokens <= 512 ? TileKind::kFew32 : TileKind::kMany;
}

std::int32_t tile_rows(TileKind kind) {
  return kind == TileKind::kFew8 ? 8 : kind == TileKind::kFew32 ? 32 : kManyRows;
}

template <WeightFormat F>
void run_hidden(const Context& context, TileKind kind, unsigned n_tiles, const Work& work,
                const HiddenArgs& args) {
  const dim3 few(blocks_for(args.w1.first.rows, kTileOutputs), n_tiles);
  const dim3 many(blocks_for(args.w1.first.rows, kManyOutputs), n_tiles);
  const dim3 threads(kMmaThreads);
  if (kind == TileKind::kFew8) {
    launch(few_hidden_kernel<F, 1>, few, threads, few_shared(1, 2), context.stream, work, args);
  } else if (kind == TileKind::kFew32) {
    launch(few_hidden_kernel<F, 4>, few, threads, few_shared(4, 2), context.stream, work, args);
  } else {
    launch(many_hidden_kernel<F>, many, threads, std::size_t{2} * kManyRows * stage_pitch<F>(),
           context.stream, work, args);
  }
}

template <WeightFormat F>
void run_down(const Context& context, TileKind kind, unsigned n_tiles, const Work& work,
              const DownArgs& args) {
  const dim3 few(blocks_for(args.w2.first.rows, kTileOutputs), n_tiles);
  const dim3 many(blocks_for(args.w2.first.rows, kManyOutputs), n_tiles);
  const dim3 threads(kMmaThreads);
  if (kind == TileKind::kFew8) {
    launch(few_down_kernel<F, 1>, few, threads, few_shared(1, 1), context.stream, work, args);
  } else if (kind == TileKind::kFew32) {
    launch(few_down_kernel<F, 4>, few, threads, few_shared(4, 1), context.stream, work, args);
  } else {
    launch(many_down_kernel<F>, many, threads, std::size_t{2} * kManyRows * stage_pitch<F>(),
           context.stream, work, args);
  }
}

// Scratch of one pass over some tokens.
struct Buffers {
  std::uint16_t* x = nullptr;              // packed for F of the matrices in hand
  float* hidden = nullptr;                 // [pairs, inter]
  std::uint16_t* packed_hidden = nullptr;  // [pairs, inter]
  float* routed = nullptr;                 // [pairs, hidden]
  float* shared = nullptr;                 // [tokens, hidden]
};

std::int64_t bytes_per_token(const ExpertsArgs& args) {
  const std::int64_t inter = args.shared_w1.rows;
  const std::int64_t hidden = args.hidden;
  return 2 * hidden + args.top_k * inter * 6 + args.top_k * hidden * 4 + hidden * 4 +
         expert_plan_bytes(args.top_k) + 256;
}

Buffers take_buffers(Scratch& scratch, const ExpertsArgs& args, std::int64_t n_tokens) {
  const std::int64_t n_pairs = n_tokens * args.top_k;
  Buffers buffers;
  buffers.x = scratch.take<std::uint16_t>(n_tokens * args.hidden);
  buffers.hidden = scratch.take<float>(n_pairs * args.shared_w1.rows);
  buffers.packed_hidden = scratch.take<std::uint16_t>(n_pairs * args.shared_w1.rows);
  buffers.routed = scratch.take<float>(n_pairs * args.hidden);
  buffers.shared = scratch.take<float>(n_tokens * args.hidden);
  return buffers;
}

// One group of matrices over its rows: x -> hidden -> out.
template <WeightFormat F>
void run_group(const Context& context, const ExpertsArgs& args, const Buffers& buffers,
               const Work& work, const HiddenArgs& hidden, const ExpertStack& w2, float* out,
               std::int32_t n_tokens, std::int64_t n_rows) {
  const TileKind kind = tile_kind(n_tokens);
  const unsigned n_tiles = work.plan.tiles != nullptr ? static_cast<unsigned>(work.plan.max_tiles)
                                                      : blocks_for(n_rows, tile_rows(kind));
  const std::int64_t inter = args.shared_w1.rows;
  pack_rows(context, args.x, args.hidden, n_tokens, args.hidden, F, true, buffers.x);
  run_hidden<F>(context, kind, n_tiles, work, hidden);
  pack_rows(context, buffers.hidden, inter, n_rows, inter, F, true, buffers.packed_hidden);
  run_down<F>(context, kind, n_tiles, work, {w2, buffers.packed_hidden, inter, out});
}

void run_pass(const Context& context, const ExpertsArgs& args, Scratch scratch) {
  const std::int64_t n_pairs = std::int64_t{args.n_tokens} * args.top_k;
  const Buffers buffers = take_buffers(scratch, args, args.n_tokens);
  Work routed;
  routed.plan = make_expert_plan(context, scratch, args.experts, args.n_tokens, args.top_k,
                                 tile_rows(tile_kind(args.n_tokens)));
  run_group<WeightFormat::kFp4>(
      context, args, buffers, routed,
      {args.w1, args.w3, buffers.x, args.hidden, args.weights, args.swiglu_limit, buffers.hidden},
      args.w2, buffers.routed, args.n_tokens, n_pairs);
  Work shared;
  shared.n_rows = args.n_tokens;
  run_group<WeightFormat::kFp8>(context, args, buffers, shared,
                                {{args.shared_w1, 0, 0},
                                 {args.shared_w3, 0, 0},
                                 buffers.x,
                                 args.hidden,
                                 nullptr,
                                 args.swiglu_limit,
                                 buffers.hidden},
                                {args.shared_w2, 0, 0}, buffers.shared, args.n_tokens,
                                args.n_tokens);
  constexpr unsigned kThreads = 256;
  launch(combine_kernel,
         dim3(blocks_for(args.hidden, kThreads), static_cast<unsigned>(args.n_tokens)),
         dim3(kThreads), 0, context.stream, args.experts, args.top_k,
         static_cast<std::int64_t>(args.hidden), static_cast<const float*>(buffers.routed),
         static_cast<const float*>(buffers.shared), args.out);
}

bool stack_fits(const ExpertStack& stack, WeightFormat format) {
  return stack.first.format == format && fits_mma(stack.first) &&
         stack.data_stride_bytes % static_cast<std::int64_t>(sizeof(Words)) == 0;
}

}  // namespace

bool experts_fit_mma(const ExpertsArgs& args) {
  const WeightFormat routed = WeightFormat::kFp4;
  const WeightFormat shared = WeightFormat::kFp8;
  return args.top_k > 0 && stack_fits(args.w1, routed) && stack_fits(args.w3, routed) &&
         stack_fits(args.w2, routed) && stack_fits({args.shared_w1, 0, 0}, shared) &&
         stack_fits({args.shared_w3, 0, 0}, shared) && stack_fits({args.shared_w2, 0, 0}, shared);
}

void experts_mma(const Context& context, const ExpertsArgs& args) {
  const Scratch scratch(context);
  const std::int32_t fit = rows_per_pass(scratch, bytes_per_token(args), args.n_tokens);
  for (std::int32_t first = 0; first < args.n_tokens; first += fit) {
    ExpertsArgs part = args;
    part.n_tokens = fit < args.n_tokens - first ? fit : args.n_tokens - first;
    part.x = args.x + std::int64_t{first} * args.hidden;
    part.experts = args.experts + std::int64_t{first} * args.top_k;
    part.weights = args.weights + std::int64_t{first} * args.top_k;
    part.out = args.out + std::int64_t{first} * args.hidden;
    run_pass(context, part, scratch);
  }
}

}  // namespace tandem::cuda
