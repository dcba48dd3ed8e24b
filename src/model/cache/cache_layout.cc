#include "model/cache/cache_layout.h"

#include <algorithm>
#include <utility>

namespace tandem::cache {
namespace {

using tensor::kHeadDim;
using tensor::kIndexDim;
using tensor::kWindowTokens;
using tensor::RowFormat;

constexpr std::int32_t kOverlapRatio = 4;  // CSA: windows of 4 tokens that overlap by one
constexpr std::int32_t kPlainRatio = 128;  // HCA
constexpr std::int32_t kRingRounding = 8;

std::int32_t round_up(std::int32_t value, std::int32_t step) {
  return (value + step - 1) / step * step;
}

Status check_shape(const CacheShape& shape) {
  if (shape.ratios.empty()) {
    return invalid_argument("cache layout: the model has no layers");
  }
  for (std::size_t i = 0; i < shape.ratios.size(); ++i) {
    const std::int32_t ratio = shape.ratios[i];
    if (ratio != 0 && ratio != kOverlapRatio && ratio != kPlainRatio) {
      return invalid_argument("cache layout: layer {} has compress ratio {}, expected 0, 4 or 128",
                              i, ratio);
    }
  }
  if (shape.index_format == RowFormat::kFp8) {
    return invalid_argument("cache layout: index keys cannot be kept as 584-byte FP8 KV rows");
  }
  return ok_status();
}

Status check_limits(const CacheLimits& limits) {
  if (limits.n_slots < 1) {
    return invalid_argument("cache layout: {} slots, expected at least 1", limits.n_slots);
  }
  if (limits.max_context_tokens < 1) {
    return invalid_argument("cache layout: a context of {} tokens, expected at least 1",
                            limits.max_context_tokens);
  }
  if (limits.draft_slack < 0 || limits.draft_slack > kWindowTokens) {
    return invalid_argument("cache layout: draft slack {}, expected 0 to {}", limits.draft_slack,
                            kWindowTokens);
  }
  const std::int64_t longest = pages_for(limits.max_context_tokens);
  if (limits.n_pages < longest) {
    return invalid_argument(
        "cache layout: {} pages hold {} tokens, less than one sequence of {}; give at least {} "
        "pages or lower the context",
        limits.n_pages, limits.n_pages * kPageTokens, limits.max_context_tokens, longest);
  }
  if (limits.n_pages > INT32_MAX) {
    return invalid_argument("cache layout: {} pages, page ids have 31 bits", limits.n_pages);
  }
  return ok_status();
}

}  // namespace

Result<CacheLayout> CacheLayout::make(const CacheShape& shape, const CacheLimits& limits) {
  TANDEM_TRY(check_shape(shape));
  TANDEM_TRY(check_limits(limits));
  CacheLayout layout;
  layout.shape_ = shape;
  layout.limits_ = limits;
  layout.window_ring_rows_ = round_up(kWindowTokens + limits.draft_slack, kRingRounding);
  return layout;
}

std::int32_t CacheLayout::state_ring_rows(std::int32_t ratio) const {
  // The next step reads back to the start of the open window; with overlap, of the one before it.
  const std::int32_t reach = ratio == kOverlapRatio ? 2 * ratio : ratio;
  return round_up(reach + limits_.draft_slack, kRingRounding);
}

std::int32_t CacheLayout::state_row_floats(std::int32_t ratio, std::int32_t dim) {
  const std::int32_t width = ratio == kOverlapRatio ? 2 * dim : dim;
  return 2 * width;
}

std::int64_t CacheLayout::kv_row_bytes() const {
  return tensor::row_bytes(shape_.kv_format, kHeadDim);
}

std::int64_t CacheLayout::index_row_bytes() const {
  return tensor::row_bytes(shape_.index_format, kIndexDim);
}

std::int64_t CacheLayout::max_pages_per_slot() const {
  return pages_for(limits_.max_context_tokens);
}

std::int64_t CacheLayout::window_bytes() const {
  return limits_.n_slots * kv_row_bytes() * window_ring_rows_;
}

std::int64_t CacheLayout::state_bytes(std::int32_t ratio, std::int32_t dim) const {
  return std::int64_t{limits_.n_slots} * state_ring_rows(ratio) * state_row_floats(ratio, dim) *
         std::int64_t{sizeof(float)};
}

std::int64_t CacheLayout::compressed_bytes(std::int32_t ratio) const {
  return limits_.n_pages * (kPageTokens / ratio) * kv_row_bytes();
}

std::int64_t CacheLayout::index_bytes() const {
  return limits_.n_pages * (kPageTokens / kOverlapRatio) * index_row_bytes();
}

std::int64_t CacheLayout::page_table_bytes() const {
  return limits_.n_slots * max_pages_per_slot() * std::int64_t{sizeof(std::int32_t)};
}

std::int64_t CacheLayout::n_layers_with(std::int32_t ratio) const {
  return std::count(shape_.ratios.begin(), shape_.ratios.end(), ratio);
}

std::vector<CacheBuffer> CacheLayout::buffers() const {
  const std::int64_t n_main = static_cast<std::int64_t>(shape_.ratios.size());
  const std::int64_t n_csa = n_layers_with(kOverlapRatio);
  const std::int64_t n_hca = n_layers_with(kPlainRatio);
  std::vector<CacheBuffer> all = {
      {"kv window", n_main * window_bytes()},
      {"kv window, draft", shape_.n_draft_layers * window_bytes()},
      {"kv rows, ratio 4", n_csa * compressed_bytes(kOverlapRatio)},
      {"kv rows, ratio 128", n_hca * compressed_bytes(kPlainRatio)},
      {"index keys", n_csa * index_bytes()},
      {"compressor state", n_csa * state_bytes(kOverlapRatio, kHeadDim) +
                               n_csa * state_bytes(kOverlapRatio, kIndexDim) +
                               n_hca * state_bytes(kPlainRatio, kHeadDim)},
      {"page tables", page_table_bytes()},
  };
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const CacheBuffer& buffer) { return buffer.bytes == 0; }),
            all.end());
  return all;
}

std::int64_t CacheLayout::total_bytes() const {
  std::int64_t total = 0;
  for (const CacheBuffer& buffer : buffers()) {
    total += buffer.bytes;
  }
  return total;
}

std::int64_t CacheLayout::bytes_per_page() const {
  const std::int64_t csa_rows = n_layers_with(kOverlapRatio) * (kPageTokens / kOverlapRatio);
  const std::int64_t hca_rows = n_layers_with(kPlainRatio) * (kPageTokens / kPlainRatio);
  return (csa_rows + hca_rows) * kv_row_bytes() + csa_rows * index_row_bytes();
}

double CacheLayout::bytes_per_token() const {
  return static_cast<double>(bytes_per_page()) / kPageTokens;
}

std::int64_t CacheLayout::bytes_per_slot() const {
  const std::int64_t n_windows =
      static_cast<std::int64_t>(shape_.ratios.size()) + shape_.n_draft_layers;
  const std::int64_t state =
      n_layers_with(kOverlapRatio) *
          (state_bytes(kOverlapRatio, kHeadDim) + state_bytes(kOverlapRatio, kIndexDim)) +
      n_layers_with(kPlainRatio) * state_bytes(kPlainRatio, kHeadDim);
  return (n_windows * window_bytes() + state) / limits_.n_slots;
}

std::int64_t CacheLayout::snapshot_bytes() const {
  const std::int64_t n_windows =
      static_cast<std::int64_t>(shape_.ratios.size()) + shape_.n_draft_layers;
  // Value and score of the A halves of four tokens, main and indexer.
  const std::int64_t carry =
      kOverlapRatio * 2 * std::int64_t{kHeadDim + kIndexDim} * std::int64_t{sizeof(float)};
  return n_windows * kWindowTokens * kv_row_bytes() + n_layers_with(kOverlapRatio) * carry;
}

}  // namespace tandem::cache
