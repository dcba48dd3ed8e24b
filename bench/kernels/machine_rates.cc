#include "bench/kernels/machine_rates.h"

#include <atomic>
#include <chrono>
#include <cstring>

#include "compute/cpu/fast/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/machine_rates.cc"
#include <hwy/foreach_target.h>  // first: it includes this file once per target

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Exclusive-or of all bytes in 16-lane words: as many loads in flight as the core can hold.
std::uint64_t fold_bytes(const std::uint8_t* bytes, std::size_t n) {
  const hn::CappedTag<std::uint8_t, 32> d;
  constexpr std::size_t kStep = hn::MaxLanes(hn::CappedTag<std::uint8_t, 32>());
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  auto c = hn::Zero(d);
  auto e = hn::Zero(d);
  for (std::size_t i = 0; i + 4 * kStep <= n; i += 4 * kStep) {
    a = hn::Xor(a, hn::LoadU(d, bytes + i));
    b = hn::Xor(b, hn::LoadU(d, bytes + i + kStep));
    c = hn::Xor(c, hn::LoadU(d, bytes + i + 2 * kStep));
    e = hn::Xor(e, hn::LoadU(d, bytes + i + 3 * kStep));
  }
  std::uint8_t lanes[kStep];
  hn::StoreU(hn::Xor(hn::Xor(a, b), hn::Xor(c, e)), d, lanes);
  std::uint64_t folded = 0;
  std::memcpy(&folded, lanes, sizeof(folded));
  return folded;
}

// Ten independent chains of multiply-adds; returns the lanes of one chain.
std::int64_t spin_multiply_adds(std::int64_t rounds, float factor, float* result) {
  const hn::CappedTag<float, 8> d;
  const auto f = hn::Set(d, factor);
  auto a = f, b = f, c = f, e = f, g = f, h = f, i = f, j = f, k = f, l = f;
  for (std::int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, f, f);
    b = hn::MulAdd(b, f, f);
    c = hn::MulAdd(c, f, f);
    e = hn::MulAdd(e, f, f);
    g = hn::MulAdd(g, f, f);
    h = hn::MulAdd(h, f, f);
    i = hn::MulAdd(i, f, f);
    j = hn::MulAdd(j, f, f);
    k = hn::MulAdd(k, f, f);
    l = hn::MulAdd(l, f, f);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(g, h), hn::Add(i, j)), hn::Add(k, l)));
  *result = hn::GetLane(hn::SumOfLanes(d, sum));
  return rounds * 10 * 2 * static_cast<std::int64_t>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace tandem::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::bench {

HWY_EXPORT(fold_bytes);
HWY_EXPORT(spin_multiply_adds);

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double seconds_to_read(cpu::ThreadPool& pool, const std::vector<std::uint8_t>& buffer) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> keep{0};
  pool.for_each(static_cast<std::int64_t>(buffer.size() / kPiece), [&](std::int64_t i, int) {
    const std::uint8_t* piece = buffer.data() + static_cast<std::size_t>(i) * kPiece;
    keep.fetch_xor(HWY_DYNAMIC_DISPATCH(fold_bytes)(piece, kPiece));
  });
  return seconds_since(start);
}

double peak_flops(cpu::ThreadPool& pool, std::int64_t rounds) {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> flops{0};
  std::atomic<float> keep{0};
  pool.for_each(pool.n_threads(), [&](std::int64_t, int) {
    float result = 0;
    flops += HWY_DYNAMIC_DISPATCH(spin_multiply_adds)(rounds, 0.999F, &result);
    keep = result;
  });
  return static_cast<double>(flops.load()) / seconds_since(start);
}

}  // namespace tandem::bench
#endif  // HWY_ONCE
