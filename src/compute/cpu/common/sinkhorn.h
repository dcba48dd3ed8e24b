// The small per-token part of a hyper-connection: from the mixing numbers m to the gates.
#pragma once

namespace tandem::cpu {

// From mixes m [(2 + n) * n] (already multiplied by the rms factor), with n streams, to
// pre [n], post [n] and comb [n, n]. SOURCE: model.md 2.2, T12, T13.
void hc_gates(int n, int sinkhorn_iters, double eps, const double* mixes, const float* scale,
              const float* base, double* pre, double* post, double* comb);

// Row softmax, then alternating column and row normalisation of c [n, n] in place, `iters` column
// passes in all. SOURCE: model.md 2.2.
void sinkhorn(int n, int iters, double eps, double* c);

}  // namespace tandem::cpu
