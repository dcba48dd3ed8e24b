// Residual streams outside the hyper-connections: start, mean, MTP input; and the row RMS norm.
// SOURCE: model.md 2.0 rms, 2.1, 2.14, 2.15 (a).
#include "compute/cpu/reference/reference_ops.h"
#include "compute/cpu/reference/scalar.h"

namespace tandem::cpu::reference {

void embed(const kernels::EmbedArgs& args) {
  for (std::int64_t t = 0; t < args.rows.n_tokens; ++t) {
    const std::uint16_t* row = args.table + std::int64_t{args.rows.tokens[t]} * args.hidden;
    for (std::int64_t s = 0; s < args.hc_mult; ++s) {
      float* stream = args.streams + (t * args.hc_mult + s) * args.hidden;
      for (std::int64_t i = 0; i < args.hidden; ++i) {
        stream[i] = tensor::bf16_to_float(row[i]);
      }
    }
  }
}

void rms_norm(Numerics numerics, const kernels::RmsNormArgs& args) {
  for (std::int64_t r = 0; r < args.n_rows; ++r) {
    rms_row(numerics, args.x + r * args.dim, args.weight, args.dim, args.eps,
            args.out + r * args.dim);
  }
}

void stream_mean(Numerics numerics, const kernels::StreamMeanArgs& args) {
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    const float* streams = args.streams + t * args.hc_mult * args.hidden;
    for (std::int64_t i = 0; i < args.hidden; ++i) {
      double sum = 0;
      for (std::int64_t s = 0; s < args.hc_mult; ++s) {
        sum += static_cast<double>(streams[s * args.hidden + i]);
      }
      args.out[t * args.out_stride + i] = rounded(numerics, sum / args.hc_mult);
    }
  }
}

void stream_add(Numerics numerics, const kernels::StreamAddArgs& args) {
  for (std::int64_t t = 0; t < args.n_tokens; ++t) {
    for (std::int64_t s = 0; s < args.hc_mult; ++s) {
      float* stream = args.streams + (t * args.hc_mult + s) * args.hidden;
      for (std::int64_t i = 0; i < args.hidden; ++i) {
        const float e = args.e[t * args.hidden + i];
        stream[i] = rounded(numerics, static_cast<double>(stream[i]) + static_cast<double>(e));
      }
    }
  }
}

}  // namespace tandem::cpu::reference
