// Linked into a second build of the parity tests: leaves out the 8-lane instruction set, so that
// the 4-lane code (SSE4 here, the layout of NEON too) is tested on machines that would not choose
// it.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "compute/cpu/fast/simd_matrix.h"

namespace tandem::parity {
namespace {

struct LeaveOutWideLanes {
  LeaveOutWideLanes() { hwy::DisableTargets(HWY_AVX2); }
};

const LeaveOutWideLanes kLeaveOutWideLanes;

TEST(NarrowLanes, AreInUse) {
  // A chunk of fp4 weights is eight vectors: 32 values with 4 lanes, 64 with 8.
  EXPECT_EQ(cpu::packed_cols(tensor::WeightFormat::kFp4, 32), 32);
}

}  // namespace
}  // namespace tandem::parity
