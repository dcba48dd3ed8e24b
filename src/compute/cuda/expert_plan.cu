#include "compute/cuda/expert_plan.h"

#include "compute/cuda/device_math.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

constexpr unsigned kThreads = kMaxExperts;

std::int32_t max_tiles(std::int64_t n_pairs, std::int32_t tile_rows) {
  const std::int64_t bound = kMaxExperts + n_pairs / tile_rows;
  return static_cast<std::int32_t>(n_pairs < bound ? n_pairs : bound);
}

// One block; thread e works for expert e. The order of an expert's rows is that of arrival and
// changes nothing: rows of a tile do not meet.
__global__ void plan_kernel(const std::int32_t* experts, std::int32_t n_pairs, std::int32_t top_k,
                            std::int32_t tile_rows, ExpertTile* tiles, std::int32_t* n_tiles,
                            std::int32_t* pairs, std::int32_t* tokens) {
  __shared__ std::int32_t counts[kMaxExperts];
  __shared__ std::int32_t next[kMaxExperts];
  const auto e = static_cast<std::int32_t>(threadIdx.x);
  counts[e] = 0;
  __syncthreads();
  for (std::int32_t p = e; p < n_pairs; p += static_cast<std::int32_t>(kThreads)) {
    atomicAdd(&counts[experts[p]], 1);
  }
  __syncthreads();
  std::int32_t first = 0;
  std::int32_t tile = 0;
  for (std::int32_t i = 0; i < e; ++i) {
    first += counts[i];
    tile += (counts[i] + tile_rows - 1) / tile_rows;
  }
  next[e] = first;
  for (std::int32_t done = 0; done < counts[e]; done += tile_rows, ++tile) {
    const std::int32_t left = counts[e] - done;
    tiles[tile] = ExpertTile{e, first + done, left < tile_rows ? left : tile_rows};
  }
  if (e == kMaxExperts - 1) {
    *n_tiles = tile;
  }
  __syncthreads();
  for (std::int32_t p = e; p < n_pairs; p += static_cast<std::int32_t>(kThreads)) {
    const std::int32_t place = atomicAdd(&next[experts[p]], 1);
    pairs[place] = p;
    tokens[place] = p / top_k;
  }
}

}  // namespace

std::int64_t expert_plan_bytes(std::int64_t n_pairs) {
  return Scratch::padded(max_tiles(n_pairs, 1) * std::int64_t{sizeof(ExpertTile)}) +
         2 * Scratch::padded(n_pairs * std::int64_t{sizeof(std::int32_t)}) + Scratch::padded(4);
}

ExpertPlan make_expert_plan(const Context& context, Scratch& scratch, const std::int32_t* experts,
                            std::int32_t n_tokens, std::int32_t top_k, std::int32_t tile_rows) {
  const std::int32_t n_pairs = n_tokens * top_k;
  ExpertPlan plan;
  plan.max_tiles = max_tiles(n_pairs, tile_rows);
  auto* tiles = scratch.take<ExpertTile>(plan.max_tiles);
  auto* n_tiles = scratch.take<std::int32_t>(1);
  auto* pairs = scratch.take<std::int32_t>(n_pairs);
  auto* tokens = scratch.take<std::int32_t>(n_pairs);
  launch(plan_kernel, dim3(1), dim3(kThreads), 0, context.stream, experts, n_pairs, top_k,
         tile_rows, tiles, n_tiles, pairs, tokens);
  plan.tiles = tiles;
  plan.n_tiles = n_tiles;
  plan.pairs = pairs;
  plan.tokens = tokens;
  return plan;
}

}  // namespace tandem::cuda
