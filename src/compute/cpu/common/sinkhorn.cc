#include "compute/cpu/common/sinkhorn.h"

#include <algorithm>
#include <cmath>

namespace tandem::cpu {
namespace {

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

void softmax_row(int n, double* row) {
  const double largest = *std::max_element(row, row + n);
  double sum = 0;
  for (int k = 0; k < n; ++k) {
    row[k] = std::exp(row[k] - largest);
    sum += row[k];
  }
  for (int k = 0; k < n; ++k) {
    row[k] /= sum;
  }
}

// Divides n values `stride` apart by their sum plus eps.
void normalise(int n, int stride, double eps, double* values) {
  double sum = eps;
  for (int k = 0; k < n; ++k) {
    sum += values[k * stride];
  }
  for (int k = 0; k < n; ++k) {
    values[k * stride] /= sum;
  }
}

}  // namespace

void sinkhorn(int n, int iters, double eps, double* c) {
  for (int j = 0; j < n; ++j) {
    softmax_row(n, c + j * n);
  }
  for (int i = 0; i < n * n; ++i) {
    c[i] += eps;
  }
  for (int iter = 0; iter < iters; ++iter) {
    for (int j = 0; iter > 0 && j < n; ++j) {
      normalise(n, 1, eps, c + j * n);
    }
    for (int k = 0; k < n; ++k) {
      normalise(n, n, eps, c + k);
    }
  }
}

void hc_gates(int n, int sinkhorn_iters, double eps, const double* mixes, const float* scale,
              const float* base, double* pre, double* post, double* comb) {
  const auto mixed = [&](int index, int part) {
    return mixes[index] * static_cast<double>(scale[part]) + static_cast<double>(base[index]);
  };
  for (int i = 0; i < n; ++i) {
    pre[i] = sigmoid(mixed(i, 0)) + eps;
    post[i] = 2.0 * sigmoid(mixed(n + i, 1));
  }
  for (int i = 0; i < n * n; ++i) {
    comb[i] = mixed(2 * n + i, 2);
  }
  sinkhorn(n, sinkhorn_iters, eps, comb);
}

}  // namespace tandem::cpu
