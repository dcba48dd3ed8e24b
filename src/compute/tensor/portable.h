// TANDEM_HD: marks small functions that kernels on a GPU share with the host, so that the meaning
// of a byte is written down once.
#pragma once

#ifdef __CUDACC__
#define TANDEM_HD __host__ __device__
#else
#define TANDEM_HD
#endif
