#include "compute/cuda/linear_mma.h"

#include "compute/cuda/mma_matrix.h"
#include "compute/cuda/packed_rows.h"
#include "compute/cuda/scratch.h"

namespace tandem::cuda {
namespace {

using kernels::LinearArgs;

// Outputs of one call, for rows [0, x.n).
struct Outputs {
  float* out = nullptr;
  std::int64_t stride = 0;
  bool round = false;
};

template <WeightFormat F, int kOctets>
__global__ void __launch_bounds__(kMmaThreads, 1)
    few_kernel(tensor::WeightMatrix w, ActivationRows x, Outputs outputs) {
  TANDEM_DYNAMIC_SHARED(float, parts);
  constexpr int kColumns = kOctets * kOctet;
  const std::int64_t first_output = static_cast<std::int64_t>(blockIdx.x) * kTileOutputs;
  const auto first = static_cast<std::int32_t>(blockIdx.y) * kColumns;
  float sums[kOctets][4];
  few_part<F>(w, first_output, x, first, sums);
  store_part(sums, parts);
  __syncthreads();
  // Neighbouring threads store neighbouring outputs of one row.
  for (int i = static_cast<int>(threadIdx.x); i < kTileOutputs * kColumns;
       i += static_cast<int>(kMmaThreads)) {
    const int output = i % kTileOutputs;
    const int column = i / kTileOutputs;
    if (first_output + output < w.rows && first + column < x.n) {
      const float sum = add_parts<kOctets>(parts, output * kColumns + column) * sum_scale<F>();
      outputs.out[(first + column) * outputs.stride + first_output + output] =
          rounded(outputs.round, sum);
    }
  }
}

template <WeightFormat F>
__global__ void __launch_bounds__(kMmaThreads, 1)
    many_kernel(tensor::WeightMatrix w, ActivationRows x, Outputs outputs) {
  TANDEM_DYNAMIC_SHARED(std::uint8_t, stage);
  const std::int64_t first_output =
      static_cast<std::int64_t>(blockIdx.x) * kManyOutputs + warp_id() * kTileOutputs;
  const auto first = static_cast<std::int32_t>(blockIdx.y) * kManyRows;
  float sums[kManyOctets][4];
  many_sums<F>(w, first_output, x, first, stage, sums);
  TANDEM_UNROLL
  for (int octet = 0; octet < kManyOctets; ++octet) {
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::int64_t output = first_output + lane_id() / 4 + i / 2 * 8;
      const std::int32_t row = first + octet * kOctet + lane_id() % 4 * 2 + i % 2;
      if (output < w.rows && row < x.n) {
        outputs.out[row * outputs.stride + output] =
            rounded(outputs.round, sums[octet][i] * sum_scale<F>());
      }
    }
  }
}

template <WeightFormat F, int kOctets>
void run_few(const Context& context, const tensor::WeightMatrix& w, const ActivationRows& x,
             const Outputs& outputs) {
  constexpr std::size_t kShared = sizeof(float) * kParts * kTileOutputs * kOctets * kOctet;
  launch(few_kernel<F, kOctets>,
         dim3(blocks_for(w.rows, kTileOutputs), blocks_for(x.n, kOctets * kOctet)),
         dim3(kMmaThreads), kShared, context.stream, w, x, outputs);
}

// Rows decide how many share one read of the weights; the bits are the same either way.
template <WeightFormat F>
void run(const Context& context, const tensor::WeightMatrix& w, const ActivationRows& x,
         const Outputs& outputs) {
  if (x.n <= 8) {
    run_few<F, 1>(context, w, x, outputs);
  } else if (x.n <= 16) {
    run_few<F, 2>(context, w, x, outputs);
  } else if (x.n <= 32) {
    run_few<F, 4>(context, w, x, outputs);
  } else if (x.n <= kManyRows) {
    run_few<F, 8>(context, w, x, outputs);
  } else {
    launch(many_kernel<F>, dim3(blocks_for(w.rows, kManyOutputs), blocks_for(x.n, kManyRows)),
           dim3(kMmaThreads), std::size_t{2} * kManyRows * stage_pitch<F>(), context.stream, w, x,
           outputs);
  }
}

}  // namespace

void linear_mma(const Context& context, const LinearArgs& args, bool quantise, bool round) {
  const std::int64_t cols = args.w.cols;
  Scratch scratch(context);
  const std::int32_t per_pass =
      rows_per_pass(scratch, cols * static_cast<std::int64_t>(sizeof(std::uint16_t)), args.n_rows);
  auto* packed = scratch.take<std::uint16_t>(per_pass * cols);
  for (std::int64_t first = 0; first < args.n_rows; first += per_pass) {
    const std::int64_t n = per_pass < args.n_rows - first ? per_pass : args.n_rows - first;
    pack_rows(context, args.x + first * args.x_stride, args.x_stride, n, cols, args.w.format,
              quantise, packed);
    const ActivationRows x{packed, cols, nullptr, static_cast<std::int32_t>(n)};
    const Outputs outputs{args.out + first * args.out_stride, args.out_stride, round};
    if (args.w.format == WeightFormat::kFp4) {
      run<WeightFormat::kFp4>(context, args.w, x, outputs);
    } else if (args.w.format == WeightFormat::kFp8) {
      run<WeightFormat::kFp8>(context, args.w, x, outputs);
    } else {
      run<WeightFormat::kBf16>(context, args.w, x, outputs);
    }
  }
}

}  // namespace tandem::cuda
