// Products of packed weights with packed activations on the tensor cores; device functions.
//
// Two shapes of the same sum. `few`: a block takes 16 outputs, its 8 warps the 8 parts of k; for up
// to 64 rows, where the time is that of reading the weights. `many`: a block takes 128 outputs,
// each warp 16 of them and all parts of k one after the other, activations staged in shared memory;
// for prefill. Every element is the same chain of matrix instructions over each part and the same
// sum of parts, so both give the same bits.
#pragma once

#include "compute/cuda/device_math.h"
#include "compute/cuda/fragments.h"
#include "compute/cuda/mma.h"
#include "compute/tensor/weight_matrix.h"

namespace tandem::cuda {

constexpr int kTileOutputs = 16;
constexpr int kOctet = 8;  // activation rows of one matrix instruction
constexpr unsigned kMmaThreads = kParts * kWarp;
constexpr int kManyOctets = 8;
constexpr int kManyRows = kManyOctets * kOctet;
constexpr int kManyOutputs = kTileOutputs * static_cast<int>(kMmaThreads) / kWarp;

// Whether the kernels below take this weight.
inline bool fits_mma(const tensor::WeightMatrix& w) {
  return w.format != WeightFormat::kF32 && w.cols % k_block(w.format) == 0 &&
         reinterpret_cast<std::uintptr_t>(w.data) % sizeof(Words) == 0;
}

// What one lane holds of a block of k: its part of two weight rows, and their scale factors.
template <WeightFormat F>
struct WeightPart {
  Words rows[2];
  Pair factors[2];
};

// This lane's weights of rows first_row + g and + 8 in block kb. Rows past the end repeat the last
// one; nobody stores their sums.
template <WeightFormat F>
__device__ inline WeightPart<F> load_weights(const tensor::WeightMatrix& w, std::int64_t first_row,
                                             int kb) {
  constexpr int kRowBytesPerBlock = 64;  // 4 lanes of 16 bytes
  const int g = lane_id() / 4;
  const int t = lane_id() % 4;
  const std::int64_t row_bytes = w.cols / k_block(F) * kRowBytesPerBlock;
  WeightPart<F> part;
  TANDEM_UNROLL
  for (int half = 0; half < 2; ++half) {
    const std::int64_t wanted = first_row + g + 8 * half;
    const std::int64_t row = wanted < w.rows ? wanted : w.rows - 1;
    const auto* bytes = static_cast<const std::uint8_t*>(w.data) + row * row_bytes;
    part.rows[half] = *reinterpret_cast<const Words*>(bytes + kb * kRowBytesPerBlock + t * 16);
    if (F == WeightFormat::kFp4) {
      part.factors[half] = fp4_factor(w.scales[row * (w.cols / 32) + kb * 4 + t]);
    } else if (F == WeightFormat::kFp8) {
      part.factors[half] = fp8_factor(w.scales[row / 128 * ((w.cols + 127) / 128) + kb / 2]);
    }
  }
  return part;
}

// Pairs of one 16-byte part in decoding order, scaled: 4 per matrix instruction and row.
template <WeightFormat F>
__device__ inline void decode(const Words& words, Pair factor, Pair (&pairs)[k_block(F) / 8]) {
  TANDEM_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (F == WeightFormat::kBf16) {
      pairs[i] = words.word[i];
    } else if constexpr (F == WeightFormat::kFp8) {
      Pair two[2];
      split_fp8(words.word[i], two);
      for (int j = 0; j < 2; ++j) {
        pairs[2 * i + j] = multiply_pairs(two[j], factor);
      }
    } else {
      Pair four[4];
      split_fp4(words.word[i], four);
      for (int j = 0; j < 4; ++j) {
        pairs[4 * i + j] = multiply_pairs(four[j], factor);
      }
    }
  }
}

// sums[octet] += weights of block kb times activations. load(octet, j) gives this lane's unit j (8
// values) of activation row octet * 8 + g in the block.
template <WeightFormat F, int kOctets, typename Load>
__device__ inline void multiply_block(const WeightPart<F>& part, const Load& load,
                                      float (&sums)[kOctets][4]) {
  constexpr int kUnits = k_block(F) / 32;  // of 8 values, two matrix instructions each
  Pair low[k_block(F) / 8];
  Pair high[k_block(F) / 8];
  decode<F>(part.rows[0], part.factors[0], low);
  decode<F>(part.rows[1], part.factors[1], high);
  TANDEM_UNROLL
  for (int j = 0; j < kUnits; ++j) {
    TANDEM_UNROLL
    for (int octet = 0; octet < kOctets; ++octet) {
      const Words x = load(octet, j);
      TANDEM_UNROLL
      for (int m = 0; m < 2; ++m) {
        const int at = 4 * j + 2 * m;
        const Pair a[4] = {low[at], high[at], low[at + 1], high[at + 1]};
        const Pair b[2] = {x.word[2 * m], x.word[2 * m + 1]};
        mma_bf16(sums[octet], a, b);
      }
    }
  }
}

template <WeightFormat F>
__device__ constexpr float sum_scale() {
  return F == WeightFormat::kBf16 ? kPlainScale : kSumScale;
}

// Rows of packed activations; entry n is rows[n], or n itself without a list.
struct ActivationRows {
  const std::uint16_t* packed = nullptr;  // [.., cols]
  std::int64_t cols = 0;
  const std::int32_t* rows = nullptr;
  std::int32_t n = 0;

  // nullptr for n past the end.
  __device__ const std::uint16_t* row(std::int32_t i) const {
    return i < n ? packed + (rows != nullptr ? rows[i] : i) * cols : nullptr;
  }
};

// One part (this warp's) of 16 outputs for kOctets * 8 rows from x.row(first) on.
template <WeightFormat F, int kOctets>
__device__ inline void few_part(const tensor::WeightMatrix& w, std::int64_t first_output,
                                const ActivationRows& x, std::int32_t first,
                                float (&sums)[kOctets][4]) {
  const BlockRange range = part_range(static_cast<int>(w.cols / k_block(F)), warp_id());
  const std::uint16_t* rows[kOctets];
  TANDEM_UNROLL
  for (int octet = 0; octet < kOctets; ++octet) {
    rows[octet] = x.row(first + octet * kOctet + lane_id() / 4);
  }
  TANDEM_UNROLL
  for (int i = 0; i < kOctets * 4; ++i) {
    sums[i / 4][i % 4] = 0;
  }
  constexpr int kAhead = kOctets <= 2 ? 4 : 2;  // loads in flight hide the memory's latency
  WeightPart<F> ahead[kAhead];
  for (int kb = range.first; kb < range.last; kb += kAhead) {
    TANDEM_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (kb + i < range.last) {
        ahead[i] = load_weights<F>(w, first_output, kb + i);
      }
    }
    TANDEM_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      if (kb + i < range.last) {
        const auto load = [&](int octet, int j) {
          const std::int64_t at =
              static_cast<std::int64_t>(kb + i) * k_block(F) + j * 32 + lane_id() % 4 * 8;
          return rows[octet] != nullptr ? *reinterpret_cast<const Words*>(rows[octet] + at)
                                        : Words{};
        };
        multiply_block<F>(ahead[i], load, sums);
      }
    }
  }
}

// Puts this warp's part into parts[warp][16][kOctets * 8] of shared memory.
template <int kOctets>
__device__ inline void store_part(const float (&sums)[kOctets][4], float* parts) {
  constexpr int kColumns = kOctets * kOctet;
  float* own = parts + warp_id() * kTileOutputs * kColumns;
  TANDEM_UNROLL
  for (int octet = 0; octet < kOctets; ++octet) {
    TANDEM_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int output = lane_id() / 4 + i / 2 * 8;
      own[output * kColumns + octet * kOctet + lane_id() % 4 * 2 + i % 2] = sums[octet][i];
    }
  }
}

// Sum of the parts of element i of [16, kOctets * 8].
template <int kOctets>
__device__ inline float add_parts(const float* parts, int i) {
  float sum = 0;
  for (int part = 0; part < kParts; ++part) {
    sum += parts[part * kTileOutputs * kOctets * kOctet + i];
  }
  return sum;
}

// Bytes between two rows of the staged activations: quarter warps then touch every bank once.
template <WeightFormat F>
constexpr int stage_pitch() {
  return k_block(F) * 2 + (k_block(F) * 2 % 128 == 0 ? 64 : 0);
}

// Copies block kb of the rows first .. first + 63 to shared memory.
template <WeightFormat F>
__device__ inline void stage_block(const ActivationRows& x, std::int32_t first, int kb,
                                   std::uint8_t* stage) {
  constexpr int kUnits = k_block(F) / 8;  // 16-byte units of a row
  for (int i = static_cast<int>(threadIdx.x); i < kManyRows * kUnits;
       i += static_cast<int>(kMmaThreads)) {
    const std::uint16_t* row = x.row(first + i / kUnits);
    const Words value = row != nullptr
                            ? *reinterpret_cast<const Words*>(
                                  row + static_cast<std::int64_t>(kb) * k_block(F) + i % kUnits * 8)
                            : Words{};
    *reinterpret_cast<Words*>(stage + i / kUnits * stage_pitch<F>() + i % kUnits * 16) = value;
  }
}

// 16 outputs per warp, from first_output of the warp on, for 64 rows from x.row(first) on.
// `stage` is shared memory of two blocks, 2 * 64 * stage_pitch. All threads of the block take part.
template <WeightFormat F>
__device__ inline void many_sums(const tensor::WeightMatrix& w, std::int64_t first_output,
                                 const ActivationRows& x, std::int32_t first, std::uint8_t* stage,
                                 float (&totals)[kManyOctets][4]) {
  const int n_blocks = static_cast<int>(w.cols / k_block(F));
  float sums[kManyOctets][4] = {};
  TANDEM_UNROLL
  for (int i = 0; i < kManyOctets * 4; ++i) {
    totals[i / 4][i % 4] = 0;
  }
  int part = 0;
  WeightPart<F> next = load_weights<F>(w, first_output, 0);
  stage_block<F>(x, first, 0, stage);
  for (int kb = 0; kb < n_blocks; ++kb) {
    __syncthreads();
    const std::uint8_t* now = stage + kb % 2 * kManyRows * stage_pitch<F>();
    const WeightPart<F> weights = next;
    if (kb + 1 < n_blocks) {
      next = load_weights<F>(w, first_output, kb + 1);
      stage_block<F>(x, first, kb + 1, stage + (kb + 1) % 2 * kManyRows * stage_pitch<F>());
    }
    const auto load = [&](int octet, int j) {
      return *reinterpret_cast<const Words*>(
          now + (octet * kOctet + lane_id() / 4) * stage_pitch<F>() + j * 64 + lane_id() % 4 * 16);
    };
    multiply_block<F>(weights, load, sums);
    // With fewer blocks than parts some are empty: adding their zero changes nothing.
    while (part < kParts && kb + 1 >= part_range(n_blocks, part).last) {
      TANDEM_UNROLL
      for (int i = 0; i < kManyOctets * 4; ++i) {
        totals[i / 4][i % 4] += sums[i / 4][i % 4];
        sums[i / 4][i % 4] = 0;
      }
      ++part;
    }
  }
  __syncthreads();
}

}  // namespace tandem::cuda
