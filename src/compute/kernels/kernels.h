// Kernels: every operation of the V4 forward pass, one Args struct each. This is the contract
// between the model and its implementations (compute/cpu: reference and SIMD; compute/cuda).
//
// Activations are float32 buffers everywhere. Under Numerics::kNative an op rounds where the
// checkpoint's own inference rounds (bf16 results, FP8-quantised inputs of FP8/FP4 weights, FP8/FP4
// simulated cache rows); under kReference it never rounds. SOURCE of each op: the named section of
// model.md. Pointers never alias unless "in/out" says so. Sizes are checked by the caller.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/kernels/step_rows.h"
#include "compute/tensor/weight_matrix.h"
#include "foundation/base/ids.h"

namespace tandem::kernels {

enum class Numerics {
  kReference,  // float32 activations, no activation quantisation: matches the golden vectors
  kNative,     // the checkpoint's own quantised activations
};

// Streams start as copies of the token's embedding. 2.1
struct EmbedArgs {
  StepRows rows;
  const std::uint16_t* table = nullptr;  // [vocab, hidden] bf16
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  float* streams = nullptr;  // [n_tokens, hc_mult, hidden]
};

// Hyper-connection entry of a sub-layer, then its RMS norm. 2.2
struct HcPreArgs {
  std::int32_t n_tokens = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  std::int32_t sinkhorn_iters = 0;
  float norm_eps = 0;
  float hc_eps = 0;
  const float* streams = nullptr;       // [n_tokens, hc_mult, hidden]
  const float* fn = nullptr;            // [(2 + hc_mult) * hc_mult, hc_mult * hidden]
  const float* base = nullptr;          // [(2 + hc_mult) * hc_mult]
  const float* scale = nullptr;         // [3]
  const std::uint16_t* norm = nullptr;  // [hidden] bf16: attn_norm or ffn_norm
  float* out = nullptr;                 // [n_tokens, hidden]
  float* post = nullptr;                // [n_tokens, hc_mult]
  float* comb = nullptr;                // [n_tokens, hc_mult, hc_mult]
};

// Hyper-connection exit: streams[j] = post[j] * sublayer + sum_i comb[i][j] * streams[i]. 2.2
struct HcPostArgs {
  std::int32_t n_tokens = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  const float* sublayer = nullptr;  // [n_tokens, hidden]; kNative rounds it to bf16 first
  const float* post = nullptr;      // [n_tokens, hc_mult]
  const float* comb = nullptr;      // [n_tokens, hc_mult, hc_mult]
  float* streams = nullptr;         // [n_tokens, hc_mult, hidden] in/out
};

// Final collapse of the streams and RMS norm, for chosen rows. 2.2, 2.12
struct HcHeadArgs {
  std::int32_t n_rows = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  float norm_eps = 0;
  float hc_eps = 0;
  const float* streams = nullptr;       // [n_tokens, hc_mult, hidden]
  const std::int32_t* rows = nullptr;   // [n_rows] row index into streams
  const float* fn = nullptr;            // [hc_mult, hc_mult * hidden]
  const float* base = nullptr;          // [hc_mult]
  const float* scale = nullptr;         // [1]
  const std::uint16_t* norm = nullptr;  // [hidden] bf16
  float* collapsed = nullptr;           // [n_rows, hidden] before the norm; may be nullptr
  float* out = nullptr;                 // [n_rows, hidden]
};

// Rows of RMS norm with a weight. 2.0
struct RmsNormArgs {
  std::int64_t n_rows = 0;
  std::int32_t dim = 0;
  float eps = 0;
  const float* x = nullptr;               // [n_rows, dim]
  const std::uint16_t* weight = nullptr;  // [dim] bf16
  float* out = nullptr;                   // [n_rows, dim]; may be x
};

// What a linear op does to its input and output under kNative. 2.0
enum class LinearKind {
  kQuantised,  // lin8 / lin4: input act_quant in blocks of 128, output rounded to bf16
  kPartial,    // like kQuantised, but the output stays float32: it will be summed over ranks
  kBf16,       // linb: input as it is, output rounded to bf16
  kF32,        // lin32: input as it is, output float32
};

// y = x * W^T. 2.0
struct LinearArgs {
  std::int64_t n_rows = 0;
  const float* x = nullptr;   // [n_rows, w.cols], rows x_stride apart
  std::int64_t x_stride = 0;  // in floats
  tensor::WeightMatrix w;
  LinearKind kind = LinearKind::kQuantised;
  float* out = nullptr;         // [n_rows, w.rows], rows out_stride apart
  std::int64_t out_stride = 0;  // in floats
};

// Per-head RMS norm without weight, then rotation of the last 64 dims. 2.3, 2.4
struct QueryArgs {
  StepRows rows;
  std::int32_t n_heads = 0;
  float eps = 0;
  const float* inv_freq = nullptr;  // [32]
  float* q = nullptr;               // [n_tokens, n_heads, 512] in/out
};

// RMS norm with weight, rotation, FP8 simulation of the 448 other dims. 2.3
struct KvArgs {
  StepRows rows;
  float eps = 0;
  const std::uint16_t* norm = nullptr;  // [512] bf16
  const float* inv_freq = nullptr;      // [32]
  float* kv = nullptr;                  // [n_tokens, 512] in/out
};

// Copies the step's kv rows into the window ring (the last ring_rows of each segment). 2.5
struct WindowAppendArgs {
  StepRows rows;
  const float* kv = nullptr;  // [n_tokens, 512]
  RingView window;            // rows of `format`
  tensor::RowFormat format = tensor::RowFormat::kF32;
};

enum class CompressedKind {
  kMain,   // d = 512: FP8 simulation of dims 0..447
  kIndex,  // d = 128: Hadamard and FP4 simulation (kNative only; it cancels in exact arithmetic)
};

// Emits every compressed row that this step completes, then appends the step's (value, score) to
// the ring. Tokens of earlier steps come from the ring, tokens of this step from kv/score. 2.6
struct CompressArgs {
  StepRows rows;
  CompressedKind kind = CompressedKind::kMain;
  std::int32_t ratio = 0;  // 4 (overlapping windows, width = 2 d) or 128 (width = d)
  std::int32_t width = 0;  // of kv and score rows
  float eps = 0;
  const float* kv = nullptr;            // [n_tokens, width] lin32(x, wkv)
  const float* score = nullptr;         // [n_tokens, width] lin32(x, wgate), without ape
  const float* ape = nullptr;           // [ratio, width]
  const std::uint16_t* norm = nullptr;  // [d] bf16
  const float* inv_freq = nullptr;      // [32]
  RingView state;     // ring rows: width values, then width scores (ape included), float32
  PagedRowsView out;  // rows of d
};

// Rotation of the index query; Hadamard and FP4 simulation under kNative. 2.8
struct IndexQueryArgs {
  StepRows rows;
  std::int32_t n_heads = 0;
  const float* inv_freq = nullptr;  // [32]
  float* iq = nullptr;              // [n_tokens, n_heads, 128] in/out
};

// The top_k best-scored visible rows of each query; ties go to the lowest index. 2.7, 2.8
struct IndexSelectArgs {
  StepRows rows;
  std::int32_t n_heads = 0;
  std::int32_t ratio = 4;
  std::int32_t top_k = 0;
  const float* iq = nullptr;  // [n_tokens, n_heads, 128]
  const float* iw = nullptr;  // [n_tokens, n_heads] linb(x, weights_proj), not yet scaled
  PagedRowsView keys;
  std::int32_t* selected = nullptr;    // [n_tokens, top_k] row numbers, ascending
  std::int32_t* n_selected = nullptr;  // [n_tokens]
};

// Attention over the raw window, the step's own rows and compressed rows, with sink and inverse
// rotation. kNative rounds the output, not the probabilities. 2.7, 2.9
struct AttentionArgs {
  StepRows rows;
  std::int32_t n_heads = 0;
  const float* q = nullptr;   // [n_tokens, n_heads, 512]
  const float* kv = nullptr;  // [n_tokens, 512] rows of this step
  RingView window;            // rows of earlier steps, of window_format
  tensor::RowFormat window_format = tensor::RowFormat::kF32;
  std::int32_t ratio = 0;                    // 0: no compressed rows
  PagedRowsView compressed;                  // used if ratio > 0
  const std::int32_t* selected = nullptr;    // [n_tokens, top_k]; nullptr: all visible rows
  const std::int32_t* n_selected = nullptr;  // [n_tokens]
  std::int32_t top_k = 0;
  const float* sink = nullptr;      // [n_heads]
  const float* inv_freq = nullptr;  // [32]
  bool block_draft = false;  // DSpark: every row of a segment sees all its rows and the whole ring
  float* out = nullptr;      // [n_tokens, n_heads, 512]
};

// Chooses experts by score, or by token id if tid2eid is given. 2.11
struct RouteArgs {
  StepRows rows;
  std::int32_t n_experts = 0;
  std::int32_t top_k = 0;
  float routed_scaling = 0;
  const float* logits = nullptr;          // [n_tokens, n_experts] lin32(x, gate.weight)
  const float* bias = nullptr;            // [n_experts]; nullptr for hash layers
  const std::int32_t* tid2eid = nullptr;  // [vocab, top_k]; nullptr for scored layers
  std::int32_t* experts = nullptr;        // [n_tokens, top_k]
  float* weights = nullptr;               // [n_tokens, top_k]
};

// Expert e of a stack of equal matrices: data + e * data_stride, scales + e * scale_stride.
struct ExpertStack {
  tensor::WeightMatrix first;
  std::int64_t data_stride_bytes = 0;
  std::int64_t scale_stride_bytes = 0;
};

// Routed and shared experts with clamped SwiGLU; the sum stays float32 for the all-reduce, and so
// do the results of each w2 (kNative does not round them: under tensor parallelism they are partial
// sums). Experts are added in rising order of id, the shared one last. 2.11
struct ExpertsArgs {
  std::int32_t n_tokens = 0;
  std::int32_t hidden = 0;
  std::int32_t top_k = 0;
  float swiglu_limit = 0;
  const float* x = nullptr;               // [n_tokens, hidden]
  const std::int32_t* experts = nullptr;  // [n_tokens, top_k]
  const float* weights = nullptr;         // [n_tokens, top_k]
  ExpertStack w1, w3, w2;                 // [inter, hidden], [inter, hidden], [hidden, inter]
  tensor::WeightMatrix shared_w1, shared_w3, shared_w2;
  float* out = nullptr;  // [n_tokens, hidden]
};

// Mean over the streams of chosen layers, the DSpark tap. 2.15 (a)
struct StreamMeanArgs {
  std::int32_t n_tokens = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  const float* streams = nullptr;  // [n_tokens, hc_mult, hidden]
  float* out = nullptr;            // [n_tokens, hidden], rows out_stride apart
  std::int64_t out_stride = 0;
};

// streams[t][s] += e[t], rounded to bf16 under kNative: the MTP input. 2.14
struct StreamAddArgs {
  std::int32_t n_tokens = 0;
  std::int32_t hidden = 0;
  std::int32_t hc_mult = 0;
  const float* e = nullptr;  // [n_tokens, hidden]
  float* streams = nullptr;  // [n_tokens, hc_mult, hidden] in/out
};

class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual Numerics numerics() const = 0;

  virtual void embed(const EmbedArgs& args) = 0;
  virtual void hc_pre(const HcPreArgs& args) = 0;
  virtual void hc_post(const HcPostArgs& args) = 0;
  virtual void hc_head(const HcHeadArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void linear(const LinearArgs& args) = 0;
  virtual void query(const QueryArgs& args) = 0;
  virtual void kv(const KvArgs& args) = 0;
  virtual void window_append(const WindowAppendArgs& args) = 0;
  virtual void compress(const CompressArgs& args) = 0;
  virtual void index_query(const IndexQueryArgs& args) = 0;
  virtual void index_select(const IndexSelectArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void route(const RouteArgs& args) = 0;
  virtual void experts(const ExpertsArgs& args) = 0;
  virtual void stream_mean(const StreamMeanArgs& args) = 0;
  virtual void stream_add(const StreamAddArgs& args) = 0;
};

}  // namespace tandem::kernels
