// The instruction sets that the SIMD files are compiled for: AVX2 and, as the least, SSE4 on x86;
// NEON on Arm. Wider ones are left out: with 256 bits these kernels already decode faster than
// memory delivers, and every target costs compile time. Include before any Highway header.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3_DL | HWY_AVX3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
