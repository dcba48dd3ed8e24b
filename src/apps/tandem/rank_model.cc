#include "apps/tandem/rank_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/tandem/memory_table.h"

namespace tandem::apps {
namespace {

int ranks_here(const ServeConfig& config) {
  return config.hosts.empty() ? static_cast<int>(config.tp) : 1;
}

int threads_per_rank(const ServeConfig& config) {
  if (config.threads > 0) {
    return static_cast<int>(config.threads);
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::max(1, cores / ranks_here(config));
}

kernels::Numerics numerics_of(const ServeConfig& config) {
  return config.numerics == "reference" ? kernels::Numerics::kReference
                                        : kernels::Numerics::kNative;
}

tensor::RowFormat kv_format_of(const ServeConfig& config) {
  if (config.numerics == "reference") {
    return tensor::RowFormat::kF32;
  }
  return config.kv_format == "bf16" ? tensor::RowFormat::kBf16 : tensor::RowFormat::kFp8;
}

v4::ModelLimits limits_of(const ServeConfig& config, const v4::ModelConfig& model) {
  const std::int32_t drafts = draft_tokens_of(config, model);
  const auto verify_rows = config.max_sequences * (1 + drafts);
  v4::ModelLimits limits;
  limits.max_step_tokens = static_cast<std::int32_t>(config.prefill_tokens + verify_rows);
  limits.max_logit_rows = static_cast<std::int32_t>(verify_rows);
  limits.n_slots = static_cast<std::int32_t>(config.max_sequences);
  limits.max_context_tokens = config.max_context_tokens;
  limits.n_pages =
      std::max(cache::pages_for(config.kv_tokens), cache::pages_for(config.max_context_tokens));
  limits.draft_slack = std::max(1, drafts);
  return limits;
}

Result<MemoryPlan> plan_of(const ServeConfig& config, const v4::OpenedModel& opened,
                           const comm::Communicator& communicator) {
  const v4::ModelLimits limits = limits_of(config, opened.config);
  const tensor::RowFormat format = kv_format_of(config);
  MemoryPlan plan;
  plan.ranks_here = ranks_here(config);
  TANDEM_ASSIGN(plan.rows,
                checkpoint::plan_weights(opened.table, communicator.rank(), communicator.size()));
  TANDEM_ASSIGN(const auto rest,
                v4::V4Model::plan_memory(opened.config, communicator.size(), limits, format));
  plan.rows.insert(plan.rows.end(), rest.begin(), rest.end());
  TANDEM_ASSIGN(const cache::CacheLayout layout,
                v4::V4Model::plan_cache(opened.config, limits, format));
  plan.rows.push_back({"prefix snapshots", layout.snapshot_bytes() * config.prefix_snapshots});
  plan.bytes_per_token = layout.bytes_per_token();
  return plan;
}

std::string describe(const v4::OpenedModel& opened, const ServeConfig& config) {
  const v4::ModelConfig& model = opened.config;
  const std::string_view release = model.draft == v4::DraftKind::kDspark ? "0731, DSpark drafter"
                                   : model.draft == v4::DraftKind::kMtp  ? "preview, MTP drafter"
                                                                         : "no drafter";
  return fmt::format(
      "model {}: {} layers, hidden {}, {} experts ({}); {} numerics, KV rows {}, up to "
      "{} drafts per step",
      config.model, model.n_layers, model.hidden, model.n_experts, release, config.numerics,
      config.numerics == "reference" ? "f32" : config.kv_format, draft_tokens_of(config, model));
}

// A line every few seconds, and one at the end.
checkpoint::LoadOptions load_options(const comm::Communicator& communicator, int n_threads,
                                     const StartLine& say) {
  using Clock = std::chrono::steady_clock;
  constexpr double kQuietSeconds = 2;
  checkpoint::LoadOptions options;
  options.rank = communicator.rank();
  options.world = communicator.size();
  options.n_threads = n_threads;
  const auto start = Clock::now();
  auto shown = std::make_shared<double>(0);
  options.progress = [say, start, shown](const checkpoint::LoadProgress& progress) {
    constexpr double kGB = 1e9;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (progress.done_bytes < progress.total_bytes && seconds < *shown + kQuietSeconds) {
      return;
    }
    *shown = seconds;
    const double done = static_cast<double>(progress.done_bytes) / kGB;
    say(fmt::format("weights: {:.2f} of {:.2f} GB per rank, {:.2f} GB/s", done,
                    static_cast<double>(progress.total_bytes) / kGB,
                    done / std::max(seconds, 1e-9)));
  };
  return options;
}

}  // namespace

std::int32_t draft_tokens_of(const ServeConfig& config, const v4::ModelConfig& model) {
  // Deeper MTP drafts are rarely accepted; DSpark drafts its whole block in one pass.
  constexpr std::int32_t kMtpDrafts = 2;
  const std::int32_t most = model.draft == v4::DraftKind::kDspark ? model.dspark_block_size
                            : model.draft == v4::DraftKind::kMtp  ? std::int32_t{8}
                                                                  : 0;
  if (config.draft_tokens >= 0) {
    return std::min(static_cast<std::int32_t>(config.draft_tokens), most);
  }
  return model.draft == v4::DraftKind::kMtp ? kMtpDrafts : most;
}

Result<text::Tokenizer> load_tokenizer(const v4::OpenedModel& opened) {
  TANDEM_ASSIGN(text::Tokenizer tokenizer,
                text::Tokenizer::load(opened.files.root / "tokenizer.json"));
  TANDEM_TRY(tokenizer.require_chat_tokens());
  return tokenizer;
}

Result<std::unique_ptr<RankModel>> load_rank_model(const ServeConfig& config,
                                                   comm::Communicator& communicator,
                                                   const StartLine& say) {
  auto rank = std::make_unique<RankModel>();
  TANDEM_ASSIGN(rank->opened, v4::open_model(config.model, communicator.size()));
  say(describe(rank->opened, config));
  const int n_threads = threads_per_rank(config);
  TANDEM_ASSIGN(rank->compute,
                open_compute({config.device, numerics_of(config), n_threads}, communicator, say));
  const v4::ModelParts parts = rank->compute->parts();
  TANDEM_ASSIGN(MemoryPlan plan, plan_of(config, rank->opened, communicator));
  if (rank->compute->scratch_bytes() > 0) {
    plan.rows.push_back({"kernel scratch", rank->compute->scratch_bytes()});
  }
  const std::int64_t of_device = rank->compute->available_bytes();
  const std::int64_t available = of_device >= 0 ? of_device : available_memory_bytes();
  say("memory plan of one rank:\n" + memory_table(plan, available));
  TANDEM_TRY(check_memory(plan, available));
  TANDEM_ASSIGN(rank->weights, v4::load_weights(rank->opened, *parts.device,
                                                load_options(communicator, n_threads, say)));
  TANDEM_ASSIGN(rank->model,
                v4::V4Model::create(rank->opened.config, *rank->weights, parts,
                                    limits_of(config, rank->opened.config), kv_format_of(config)));
  rank->forward = runtime::make_v4_forward_model(*rank->model);
  return rank;
}

}  // namespace tandem::apps
