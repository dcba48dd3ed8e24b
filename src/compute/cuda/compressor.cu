// Compressed rows: one block per token, busy only where the token completes a row; then the step's
// own (value, score) pairs go to the ring. SOURCE: model.md 2.6, traps T16-T21.
#include "compute/cuda/device_math.h"
#include "compute/cuda/ops.h"
#include "compute/cuda/row_codec.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::CompressArgs;
using kernels::CompressedKind;

constexpr unsigned kThreads = 128;

// Value and score (ape included) of dim i of the token at position p: from this step or the ring.
struct Candidate {
  float value;
  float logit;
};

__device__ Candidate candidate_of(const CompressArgs& args, const kernels::Segment& segment,
                                  Position p, int i) {
  if (p < segment.first_position) {
    const auto* row = static_cast<const float*>(ring_row(args.state, segment.slot, p));
    return {row[i], row[args.width + i]};
  }
  const std::int64_t t = segment.first_row + (p - segment.first_position);
  return {args.kv[t * args.width + i],
          args.score[t * args.width + i] + args.ape[(p % args.ratio) * args.width + i]};
}

// The candidates of row c: with overlap the A half of the previous window, then the B half of this
// one (row 0 has no previous window, T18); without, the window itself.
struct Pool {
  Position first = 0;
  int n = 0;
  int n_previous = 0;  // of n: those that use the A half
};

__device__ Pool pool_of(const CompressArgs& args, Position c) {
  const bool overlap = args.ratio == 4;
  const bool previous = overlap && c > 0;
  Pool pool;
  pool.first = (previous ? c - 1 : c) * args.ratio;
  pool.n_previous = previous ? args.ratio : 0;
  pool.n = pool.n_previous + args.ratio;
  return pool;
}

// Softmax over the candidates of one dim (T19).
__device__ float pool_dim(const CompressArgs& args, const kernels::Segment& segment,
                          const Pool& pool, int d, int i) {
  const int b_half = args.ratio == 4 ? d : 0;
  float largest = -INFINITY;
  for (int j = 0; j < pool.n; ++j) {
    const int offset = j < pool.n_previous ? 0 : b_half;
    largest = fmaxf(largest, candidate_of(args, segment, pool.first + j, offset + i).logit);
  }
  float sum = 0;
  float weighted = 0;
  for (int j = 0; j < pool.n; ++j) {
    const int offset = j < pool.n_previous ? 0 : b_half;
    const Candidate candidate = candidate_of(args, segment, pool.first + j, offset + i);
    const float weight = expf(candidate.logit - largest);
    sum += weight;
    weighted += weight * candidate.value;
  }
  return weighted / sum;
}

// Norm of the pooled row in shared memory, [d].
__device__ void norm_row(bool native, const CompressArgs& args, int d, float* row, float* sums) {
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < d; i += kThreads) {
    squares += row[i] * row[i];
  }
  squares = block_sum(squares, sums);
  const float scale = 1.0F / sqrtf(squares / static_cast<float>(d) + args.eps);
  for (int i = static_cast<int>(threadIdx.x); i < d; i += kThreads) {
    row[i] = rounded(native, tensor::bf16_to_float(args.norm[i]) * (row[i] * scale));
  }
  __syncthreads();
}

// Rotation, simulation and storing, by one warp.
__device__ void finish_main(bool native, const CompressArgs& args, Position c, const float* row,
                            void* out) {
  float v[kLaneValues];
  for (int i = 0; i < kLaneValues; ++i) {
    v[i] = row[lane_id() * kLaneValues + i];
  }
  rotate_row16(native, c * args.ratio, args.inv_freq, lane_id(), v);
  if (native) {
    simulate_fp8_row(lane_id(), v);
  }
  store_row16(args.out.format, out, lane_id(), v);
}

__device__ void finish_index(bool native, const CompressArgs& args, Position c, const float* row,
                             void* out) {
  constexpr int kFirstRotated = (tensor::kIndexDim - tensor::kRopeDim) / 4;
  float v[4];
  for (int i = 0; i < 4; ++i) {
    v[i] = row[lane_id() * 4 + i];
  }
  if (lane_id() >= kFirstRotated) {
    for (int i = 0; i < 4; i += 2) {
      const int pair = (lane_id() - kFirstRotated) * 2 + i / 2;
      rotate_pair(c * args.ratio, args.inv_freq, pair, 1.0F, v[i], v[i + 1]);
      v[i] = rounded(native, v[i]);
      v[i + 1] = rounded(native, v[i + 1]);
    }
  }
  if (native) {
    hadamard_fp4(v);
  }
  store_plain<4>(args.out.format, static_cast<std::uint8_t*>(out), lane_id() * 4, v);
}

__global__ void compress_kernel(bool native, CompressArgs args) {
  __shared__ float sums[kThreads / kWarp];
  __shared__ float row[tensor::kHeadDim];
  const TokenPlace place = place_of(args.rows, static_cast<std::int32_t>(blockIdx.x));
  if ((place.position + 1) % args.ratio != 0) {
    return;
  }
  const Position c = place.position / args.ratio;
  const int d = args.kind == CompressedKind::kMain ? tensor::kHeadDim : tensor::kIndexDim;
  const Pool pool = pool_of(args, c);
  for (int i = static_cast<int>(threadIdx.x); i < d; i += kThreads) {
    row[i] = rounded(native, pool_dim(args, place.segment, pool, d, i));
  }
  __syncthreads();
  norm_row(native, args, d, row, sums);
  if (warp_id() == 0) {
    void* out = args.out.row(place.segment.slot, c);
    if (args.kind == CompressedKind::kMain) {
      finish_main(native, args, c, row, out);
    } else {
      finish_index(native, args, c, row, out);
    }
  }
}

// Older rows of a long segment would only be overwritten by its last ring_rows.
__global__ void append_state_kernel(CompressArgs args) {
  const std::int64_t t = blockIdx.x;
  const TokenPlace place = place_of(args.rows, static_cast<std::int32_t>(t));
  if (t - place.segment.first_row < place.segment.n_rows - args.state.ring_rows) {
    return;
  }
  auto* row = static_cast<float*>(ring_row(args.state, place.segment.slot, place.position));
  const float* ape = args.ape + (place.position % args.ratio) * args.width;
  for (int i = static_cast<int>(threadIdx.x); i < args.width; i += kThreads) {
    row[i] = args.kv[t * args.width + i];
    row[args.width + i] = args.score[t * args.width + i] + ape[i];
  }
}

}  // namespace

void compress(const Context& context, const CompressArgs& args) {
  const dim3 grid(static_cast<unsigned>(args.rows.n_tokens));
  launch(compress_kernel, grid, dim3(kThreads), 0, context.stream, context.native, args);
  launch(append_state_kernel, grid, dim3(kThreads), 0, context.stream, args);
}

}  // namespace tandem::cuda
