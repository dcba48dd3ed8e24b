// shard_bench: one rank of two at the full shape of the 0731 checkpoint, with random weights in
// memory, as fast as it decodes, reads prompts and drafts. No network: what two machines lose to it
// is in the projection, with its assumptions. Every number stands beside the bytes that had to move
// and the read bandwidth measured in the same run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "bench/shard/shard_model.h"

namespace tandem::bench {
namespace {

struct Options {
  bool smoke = false;
  bool no_graphs = false;
  int layers = 43;
  int repeats = 20;
  std::vector<std::int64_t> rows = {1, 2, 4, 6, 16, 32, 64};
  std::vector<std::int64_t> contexts = {0, 32768, 131072, 1040000};
  std::vector<std::int64_t> prefill = {2048, 8192};
  std::string csv;
};

// Of two GB10s: read bandwidth of one, and what one collective costs (peers' published figures).
constexpr double kGb10BytesPerSecond = 232e9;
constexpr double kCollectiveSeconds = 30e-6;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Median of `repeats` runs after three that warm up and record.
struct Timing {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

Timing timed(int repeats, const std::function<void()>& work) {
  for (int i = 0; i < 3; ++i) {
    work();
  }
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    times.push_back(seconds_of(work));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

void require_ok(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "shard_bench: %s\n", status.to_string().c_str());
    std::exit(1);
  }
}

v4::ModelLimits limits_of(const Options& options) {
  v4::ModelLimits limits;
  limits.max_step_tokens = 64;
  limits.n_slots = 1;
  for (const std::int64_t n : options.rows) {
    limits.n_slots = std::max(limits.n_slots, static_cast<std::int32_t>(n));
  }
  for (const std::int64_t n : options.prefill) {
    limits.max_step_tokens = std::max(limits.max_step_tokens, static_cast<std::int32_t>(n));
    limits.max_context_tokens = std::max(limits.max_context_tokens, n + 128);
  }
  for (const std::int64_t n : options.contexts) {
    limits.max_context_tokens = std::max(limits.max_context_tokens, n + 128);
  }
  limits.max_logit_rows = std::min(64, limits.max_step_tokens);
  limits.n_pages = limits.max_context_tokens / v4::kPageTokens + 1;
  return limits;
}

class Bench {
 public:
  Bench(const Options& options, ShardBackend& backend, ShardModel& shard)
      : options_(options), backend_(backend), shard_(shard) {
    if (!options.csv.empty()) {
      csv_ = std::fopen(options.csv.c_str(), "w");
    }
    if (csv_ != nullptr) {
      std::fputs("case,rows,context,ms,ms_low,ms_high,gb,gb_per_s,share,gb10_pair_ms\n", csv_);
    }
  }

  ~Bench() {
    if (csv_ != nullptr) {
      std::fclose(csv_);
    }
  }

  void bandwidth() {
    std::int64_t bytes = 0;
    const void* data = shard_.big_block(bytes);
    const Timing timing = timed(options_.repeats, [&] { backend_.read(data, bytes); });
    bandwidth_ = static_cast<double>(bytes) / timing.median;
    std::printf("read bandwidth: %.0f GB/s over %.2f GB (one tensor)\n", bandwidth_ / 1e9,
                static_cast<double>(bytes) / 1e9);
  }

  void decode() {
    std::printf(
        "\n| rows | context | ms (low-high) | GB | GB/s | share of read bandwidth | two GB10s, ms "
        "|\n"
        "|---|---|---|---|---|---|---|\n");
    for (const std::int64_t context : options_.contexts) {
      for (const std::int64_t n : options_.rows) {
        const v4::StepInput input = rows_of(n, context);
        report("decode", n, context, timed(options_.repeats, [&] { run(input); }));
      }
    }
  }

  void prefill() {
    std::printf(
        "\n| prefill rows | ms | TFLOP/s of the matrix products | tokens/s |\n|---|---|---|---|\n");
    for (const std::int64_t n : options_.prefill) {
      v4::StepInput input;
      input.tokens = tokens(n);
      input.segments = {{0, 0, static_cast<std::int32_t>(n), 0}};
      input.logit_rows = {static_cast<std::int32_t>(n) - 1};
      const Timing timing = timed(std::max(1, options_.repeats / 5), [&] { run(input); });
      std::printf("| %lld | %.1f | %.1f | %.0f |\n", static_cast<long long>(n), timing.median * 1e3,
                  shard_.flops_per_token() * static_cast<double>(n) / timing.median / 1e12,
                  static_cast<double>(n) / timing.median);
      line("prefill", n, 0, timing, 0);
    }
  }

  // One forward and one draft of a whole block, less the forward alone.
  void draft() {
    const v4::StepInput input = rows_of(1, options_.contexts.front());
    const Timing forward = timed(options_.repeats, [&] { run(input); });
    const v4::DraftSequence sequence{0, 1, 1, shard_.model().max_drafts()};
    const Timing both = timed(options_.repeats, [&] {
      run(input);
      const auto sampler = [](std::size_t, std::int32_t, std::span<const float>) {
        return TokenId{5};
      };
      require_ok(shard_.model().draft(std::span(&sequence, 1), sampler).status());
    });
    std::printf("\ndraft of %d tokens: %.3f ms\n", shard_.model().max_drafts(),
                (both.median - forward.median) * 1e3);
    line("draft", 1, 0, {both.median - forward.median, 0, 0}, 0);
  }

 private:
  std::vector<TokenId> tokens(std::int64_t n) {
    std::vector<TokenId> result;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t random = cuda::scramble(static_cast<std::uint64_t>(i) + 77);
      result.push_back(static_cast<TokenId>(
          random % static_cast<std::uint64_t>(shard_.model().config().vocab_size)));
    }
    return result;
  }

  v4::StepInput rows_of(std::int64_t n, std::int64_t context) {
    v4::StepInput input;
    input.tokens = tokens(n);
    for (std::int32_t i = 0; i < n; ++i) {
      input.segments.push_back({i, i, 1, context});
      input.logit_rows.push_back(i);
    }
    return input;
  }

  void run(const v4::StepInput& input) { require_ok(shard_.model().forward(input).status()); }

  void report(const char* what, std::int64_t n, std::int64_t context, const Timing& timing) {
    const StepBytes bytes = shard_.step_bytes(n, context);
    const double rate = bytes.total() / timing.median;
    const double share = rate / bandwidth_;
    const double collectives = 2.0 * shard_.model().config().n_layers * kCollectiveSeconds;
    const double pair = bytes.total() / (kGb10BytesPerSecond * share) + collectives;
    std::printf("| %lld | %lld | %.3f (%.3f-%.3f) | %.2f | %.0f | %.0f%% | %.1f |\n",
                static_cast<long long>(n), static_cast<long long>(context), timing.median * 1e3,
                timing.lowest * 1e3, timing.highest * 1e3, bytes.total() / 1e9, rate / 1e9,
                share * 100, pair * 1e3);
    std::fflush(stdout);
    line(what, n, context, timing, bytes.total());
  }

  void line(const char* what, std::int64_t n, std::int64_t context, const Timing& timing,
            double bytes) {
    if (csv_ == nullptr) {
      return;
    }
    const double rate = bytes / timing.median;
    std::fputs(fmt::format("{},{},{},{:.4f},{:.4f},{:.4f},{:.3f},{:.1f},{:.3f},\n", what, n,
                           context, timing.median * 1e3, timing.lowest * 1e3, timing.highest * 1e3,
                           bytes / 1e9, rate / 1e9, rate / bandwidth_)
                   .c_str(),
               csv_);
    std::fflush(csv_);
  }

  const Options& options_;
  ShardBackend& backend_;
  ShardModel& shard_;
  double bandwidth_ = 1;
  std::FILE* csv_ = nullptr;
};

int run_bench(Options options) {
  if (options.smoke) {
    options.rows = {1, 3};
    options.contexts = {0, 600};
    options.prefill = {64};
    options.repeats = 2;
  }
  auto backend = open_shard_backend(!options.no_graphs);
  require_ok(backend.status());
  const v4::ModelConfig config = options.smoke
                                     ? v4::tiny_config(v4::DraftKind::kDspark)
                                     : v4::flash_config(v4::DraftKind::kDspark, options.layers);
  const v4::ModelLimits limits = limits_of(options);
  std::unique_ptr<ShardModel> shard;
  const double seconds = seconds_of([&] {
    auto made = ShardModel::make(config, **backend, limits);
    require_ok(made.status());
    shard = std::move(made).value();
  });
  std::printf("%s: rank 0 of 2, %d layers, %.2f GB of weights, made in %.1f s\n",
              (*backend)->name().c_str(), config.n_layers,
              static_cast<double>(shard->weight_bytes()) / 1e9, seconds);
  Bench bench(options, **backend, *shard);
  bench.bandwidth();
  bench.decode();
  bench.prefill();
  bench.draft();
  if ((*backend)->graphs() != nullptr) {
    const device::StepGraphStats stats = (*backend)->graphs()->stats();
    std::printf("graphs: %lld recorded, %lld replays, %lld direct steps\n",
                static_cast<long long>(stats.n_recorded), static_cast<long long>(stats.n_replayed),
                static_cast<long long>(stats.n_direct));
  }
  std::printf("two GB10s: %.0f GB/s each at the same share, %.0f us per collective, two a layer\n",
              kGb10BytesPerSecond / 1e9, kCollectiveSeconds * 1e6);
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::Options options;
  CLI::App app{"One rank of two at full shape, with random weights: decode, prefill, draft."};
  app.add_flag("--smoke", options.smoke, "tiny shape, for tests");
  app.add_flag("--no-graphs", options.no_graphs, "queue every step kernel by kernel");
  app.add_option("--layers", options.layers, "layers of the model (43)");
  app.add_option("--repeats", options.repeats, "timed runs of a case");
  app.add_option("--rows", options.rows, "decode rows")->delimiter(',');
  app.add_option("--contexts", options.contexts, "tokens before the rows")->delimiter(',');
  app.add_option("--prefill", options.prefill, "rows of a prompt chunk")->delimiter(',');
  app.add_option("--csv", options.csv, "file for rows of numbers");
  CLI11_PARSE(app, argc, argv);
  return tandem::bench::run_bench(std::move(options));
}
