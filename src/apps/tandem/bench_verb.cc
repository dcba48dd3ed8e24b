#include "apps/tandem/bench_verb.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/tandem/bench_compare_verb.h"
#include "apps/tandem/bench_progress.h"
#include "foundation/base/clock.h"
#include "foundation/base/random.h"
#include "operations/bench/bench_report.h"
#include "operations/bench/protocols.h"

namespace tandem::apps {
namespace {

constexpr int kExitRequestsFailed = 1;
constexpr int kExitBadArguments = 2;
constexpr int kExitUnreachable = 3;
constexpr int kExitInterrupted = 130;

std::atomic<bool> interrupted{false};

// The first signal ends the run and keeps what is finished; a second one leaves at once (the files
// hold every finished cell even then).
void on_interrupt(int) {
  if (interrupted.exchange(true)) {
    _exit(kExitInterrupted);
  }
}

struct BenchFlags {
  std::string url;
  std::vector<std::string> contents = {"prose"};
  std::vector<int> concurrency = {1, 2, 4};
  std::vector<std::string> contexts = {"256"};
  std::vector<std::string> mixed;
  std::string protocol;
  bool warm = false;
  bool list_protocols = false;
  std::string csv_file;
  std::string json_file;
  std::string html_file;
  bench::BenchPlan plan;
};

int fail(const std::string& message, int code) {
  std::fprintf(stderr, "tandem bench: %s\n", message.c_str());
  return code;
}

// "256", "32K", "1M": tokens, K = 1024.
Result<std::int64_t> parse_tokens(const std::string& text, const char* flag) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  const std::string unit = text.substr(digits);
  const std::int64_t factor = unit.empty() ? 1 : (unit == "K" || unit == "k") ? 1024 : 1024 * 1024;
  const bool known = factor < 1024 * 1024 || unit == "M" || unit == "m";
  if (digits == 0 || digits > 7 || !known) {
    return invalid_argument("{} '{}'; expected tokens like 256, 32K or 1M", flag, text);
  }
  return std::stoll(text.substr(0, digits)) * factor;
}

Status add_mixed_cells(const BenchFlags& flags, bench::ContentClass content,
                       std::vector<bench::Cell>& cells) {
  TANDEM_ASSIGN(const std::int64_t context, parse_tokens(flags.contexts.front(), "--context"));
  for (const std::string& text : flags.mixed) {
    TANDEM_ASSIGN(const std::int64_t tokens, parse_tokens(text, "--mixed"));
    for (const int concurrency : flags.concurrency) {
      cells.push_back({.content = content,
                       .concurrency = concurrency,
                       .context_tokens = context,
                       .mixed_prompt_tokens = tokens});
    }
  }
  return ok_status();
}

Result<std::vector<bench::Cell>> make_cells(const BenchFlags& flags) {
  std::vector<bench::Cell> cells;
  for (const std::string& name : flags.contents) {
    const auto content = bench::parse_content(name);
    if (!content.has_value()) {
      return invalid_argument(
          "--content '{}'; expected prose, code, json, chat, counting or wordlist", name);
    }
    for (const std::string& text : flags.contexts) {
      TANDEM_ASSIGN(const std::int64_t tokens, parse_tokens(text, "--context"));
      for (const int concurrency : flags.concurrency) {
        bench::Cell cell{.content = *content, .concurrency = concurrency, .context_tokens = tokens};
        cells.push_back(cell);
        if (flags.warm) {
          cell.warm = true;
          cells.push_back(cell);
        }
      }
    }
    TANDEM_TRY(add_mixed_cells(flags, *content, cells));
  }
  return cells;
}

// Cells and shape of a published protocol.
Status use_protocol(BenchFlags& flags) {
  const bench::Protocol* protocol = bench::find_protocol(flags.protocol);
  if (protocol == nullptr) {
    return invalid_argument("--protocol '{}'; --list-protocols names them", flags.protocol);
  }
  flags.plan.protocol = protocol->name;
  flags.plan.load.shape = protocol->shape;
  flags.plan.cells = protocol->cells();
  return ok_status();
}

int list_protocols() {
  for (const bench::Protocol& protocol : bench::published_protocols()) {
    std::printf("%-16s %s\n", protocol.name.c_str(), protocol.title.c_str());
    for (const std::string& difference : protocol.differences) {
      std::printf("    differs: %s\n", difference.c_str());
    }
  }
  return 0;
}

// Writes beside the file and renames: a reader never sees half a report.
bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) {
    return true;
  }
  const std::string fresh = path + ".new";
  std::ofstream file(fresh);
  file << text;
  file.close();
  std::error_code error;
  if (file) {
    std::filesystem::rename(fresh, path, error);
  }
  if (!file || error) {
    std::fprintf(stderr, "tandem bench: cannot write %s\n", path.c_str());
    return false;
  }
  return true;
}

bool write_reports(const BenchFlags& flags, const bench::BenchRun& run) {
  const bool csv = write_file(flags.csv_file, bench::to_csv(run));
  const bool json = write_file(flags.json_file, bench::to_json(run));
  const bool html = write_file(flags.html_file, bench::to_html(run));
  return csv && json && html;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

int exit_code_of(const bench::BenchRun& run, const std::string& url) {
  switch (run.end) {
    case bench::RunEnd::kInterrupted:
      return fail(fmt::format("interrupted; {} of {} cells are kept", run.cells.size(),
                              run.plan.cells.size()),
                  kExitInterrupted);
    case bench::RunEnd::kServerGone:
      return fail(fmt::format("{} stopped answering in cell {} of {}; what was finished is kept",
                              url, run.cells.size(), run.plan.cells.size()),
                  kExitUnreachable);
    case bench::RunEnd::kTimeLimit:
      std::fprintf(stderr, "tandem bench: --max-seconds is over; %zu of %zu cells are kept\n",
                   run.cells.size(), run.plan.cells.size());
      break;
    case bench::RunEnd::kComplete:
      break;
  }
  for (const bench::CellResult& cell : run.cells) {
    const bool empty = cell.samples.empty() && cell.end == bench::CellEnd::kComplete;
    if (!cell.errors.empty() || empty) {
      return kExitRequestsFailed;
    }
  }
  return 0;
}

int run_plan(const BenchFlags& flags) {
  bench::BenchRun run;
  run.url = flags.url;
  run.started_at = utc_now();
  run.plan = flags.plan;
  BenchProgress progress(run.plan);
  std::printf("%smodel %s, %ld tokens an answer%s, temperature %g, seed %lu\n\n%s\n",
              bench::measuring_rules().c_str(), run.plan.load.target.model.c_str(),
              run.plan.load.shape.max_tokens, run.plan.load.shape.natural ? " at most" : " exactly",
              run.plan.load.shape.temperature, run.plan.load.seed, bench::row_heading().c_str());
  bool written = true;
  const bench::BenchEvents events{[&progress](const bench::Cell& cell, std::size_t place) {
                                    progress.cell_started(cell, place);
                                  },
                                  [&progress] { progress.request_finished(); },
                                  [&](const bench::BenchRun& so_far) {
                                    progress.clear();
                                    std::printf("%s\n", bench::row(so_far.cells.back()).c_str());
                                    std::fflush(stdout);
                                    written = write_reports(flags, so_far);
                                  }};
  const auto done = bench::run_bench(std::move(run), events, interrupted);
  progress.clear();
  if (!done.ok()) {
    const bool gone = done.status().code() == StatusCode::kUnavailable;
    const int code = interrupted.load() ? kExitInterrupted : kExitRequestsFailed;
    return fail(done.status().message(), gone ? kExitUnreachable : code);
  }
  if (const bench::Protocol* protocol = bench::find_protocol(done->plan.protocol)) {
    std::printf("\n%s", bench::beside_published(*protocol, done->cells).c_str());
  }
  const int code = exit_code_of(*done, flags.url);
  return code == 0 && !written ? kExitRequestsFailed : code;
}

int run_bench(const BenchFlags& given) {
  BenchFlags flags = given;
  if (flags.list_protocols) {
    return list_protocols();
  }
  auto url = net::parse_url(flags.url);
  if (!url.ok()) {
    return fail(url.status().message(), kExitBadArguments);
  }
  if (url->prefix == "/v1") {
    url->prefix.clear();  // targets carry it themselves
  }
  if (!flags.protocol.empty()) {
    const Status status = use_protocol(flags);
    if (!status.ok()) {
      return fail(status.message(), kExitBadArguments);
    }
  } else {
    auto cells = make_cells(flags);
    if (!cells.ok()) {
      return fail(cells.status().message(), kExitBadArguments);
    }
    flags.plan.cells = std::move(cells).value();
  }
  bench::LoadOptions& load = flags.plan.load;
  load.target.url = *url;
  if (load.seed == 0) {
    load.seed = mix64(static_cast<std::uint64_t>(system_clock().now_us())) >> 16;
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (load.target.model.empty()) {
    const auto model = bench::first_model(load.target, interrupted);
    if (!model.ok()) {
      const bool gone = model.status().code() == StatusCode::kUnavailable;
      return fail(model.status().message(), gone ? kExitUnreachable : kExitRequestsFailed);
    }
    load.target.model = *model;
  }
  return run_plan(flags);
}

void add_plan_flags(CLI::App& verb, BenchFlags& flags) {
  bench::LoadOptions& load = flags.plan.load;
  verb.add_option("--content", flags.contents, "prose, code, json, chat, counting, wordlist")
      ->delimiter(',')
      ->capture_default_str();
  verb.add_option("--concurrency", flags.concurrency, "streams at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb.add_option("--context", flags.contexts, "prompt lengths in tokens: 256, 32K, 1M")
      ->delimiter(',')
      ->capture_default_str();
  verb.add_flag("--warm", flags.warm, "measure each cell also with a prompt the server knows");
  verb.add_option("--mixed", flags.mixed,
                  "measure also what running streams keep while a prompt of this length is read")
      ->delimiter(',');
  verb.add_option("--mixed-quiet-seconds", load.quiet_s, "undisturbed time before each long prompt")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  verb.add_option("--mixed-stream-tokens", load.mixed_stream_tokens,
                  "longest answer of a running stream in mixed cells")
      ->check(CLI::Range(16, 1'000'000))
      ->capture_default_str();
  auto* protocol = verb.add_option("--protocol", flags.protocol,
                                   "run the cells of a published protocol, and print its figures");
  for (const char* name : {"--content", "--concurrency", "--context", "--warm", "--mixed"}) {
    protocol->excludes(verb.get_option(name));
  }
  verb.add_flag("--list-protocols", flags.list_protocols, "list the published protocols and leave");
}

void add_load_flags(CLI::App& verb, BenchFlags& flags) {
  bench::LoadOptions& load = flags.plan.load;
  auto* protocol = verb.get_option("--protocol");
  verb.add_option("--max-tokens", load.shape.max_tokens, "tokens per answer")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str()
      ->excludes(protocol);
  verb.add_option("--temperature", load.shape.temperature, "sampling temperature; 0: greedy")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str()
      ->excludes(protocol);
  verb.add_flag("--natural", load.shape.natural, "let answers end by themselves")
      ->excludes(protocol);
  verb.add_option("--requests", load.requests_per_stream, "requests per stream and cell")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--warm-up", load.warm_up_requests, "requests before each cell, not counted")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  verb.add_option("--seed", load.seed,
                  "seed of the prompts; default: a new one, so that no run finds another's cache");
  verb.add_option("--timeout-ms", load.target.timeout_ms, "longest wait for the next byte")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--max-seconds", flags.plan.max_seconds,
                  "end the whole run after this time and keep what is finished")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_bench_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  flags->plan.load.seed = 0;
  CLI::App* verb = app.add_subcommand("bench", "measure the speed of a running server");
  verb->add_option("url", flags->url, "server address, for example http://127.0.0.1:8000");
  verb->add_option("--model", flags->plan.load.target.model,
                   "model name; default: the server's first");
  verb->add_option("--api-key", flags->plan.load.target.api_key, "key, if the server wants one");
  add_plan_flags(*verb, *flags);
  add_load_flags(*verb, *flags);
  verb->add_option("--csv", flags->csv_file, "write rows after each cell");
  verb->add_option("--json", flags->json_file,
                   "write a report that compare reads, after each cell");
  verb->add_option("--html", flags->html_file, "write a page with plots after each cell");
  add_bench_compare_verb(*verb, exit_code);
  verb->callback([verb, flags, &exit_code] {
    if (verb->get_subcommands().empty()) {
      exit_code = run_bench(*flags);
    }
  });
}

}  // namespace tandem::apps
