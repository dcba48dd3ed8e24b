#include "apps/tandem/bench_verb.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>

#include "foundation/json/json.h"
#include "operations/bench/bench_report.h"

namespace tandem::apps {
namespace {

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  if (interrupted.exchange(true)) {
    _exit(130);
  }
}

struct BenchFlags {
  std::string url;
  std::string model;
  std::vector<std::string> contents = {"prose"};
  std::vector<int> concurrency = {1, 2, 4};
  std::vector<std::int64_t> words = {100};
  bool warm = false;
  std::string csv_file;
  std::string json_file;
  std::string html_file;
  bench::LoadOptions load;
};

struct CompareFlags {
  std::string before;
  std::string after;
  double noise = 0.02;
};

int fail(const std::string& message, int code) {
  std::fprintf(stderr, "tandem bench: %s\n", message.c_str());
  return code;
}

Result<std::string> first_model(const net::Url& url, const std::string& api_key) {
  net::HttpRequest request;
  request.target = "/v1/models";
  if (!api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + api_key);
  }
  TANDEM_ASSIGN(const net::HttpResponse response, net::http_fetch(url, request));
  TANDEM_ASSIGN(const json::Value body, json::parse(response.body));
  const json::Value* data = json::find(body, "data");
  if (data == nullptr || !data->is_array() || data->get_array().empty()) {
    return not_found("GET /v1/models lists no model; name one with --model");
  }
  return json::get_string(data->get_array().front().as_object(), "id", "data[0].");
}

Result<std::vector<bench::Cell>> make_cells(const BenchFlags& flags) {
  std::vector<bench::Cell> cells;
  for (const std::string& name : flags.contents) {
    const auto content = bench::parse_content(name);
    if (!content.has_value()) {
      return invalid_argument("--content '{}'; expected prose, code, json, chat or counting", name);
    }
    for (const std::int64_t words : flags.words) {
      for (const int concurrency : flags.concurrency) {
        cells.push_back({*content, concurrency, words, false});
        if (flags.warm) {
          cells.push_back({*content, concurrency, words, true});
        }
      }
    }
  }
  return cells;
}

void show_cell(const bench::CellResult& cell) {
  const bench::Summary ttft = cell.ttft();
  const bench::Summary decode = cell.decode();
  std::printf("%-9s %11d %13.0f  %5s %8.3f [%.3f, %.3f] %9.1f [%.1f, %.1f] %10.1f",
              std::string(bench::content_name(cell.cell.content)).c_str(), cell.cell.concurrency,
              cell.prompt_tokens(), cell.cell.repeat_prompt ? "warm" : "cold", ttft.median,
              ttft.low, ttft.high, decode.median, decode.low, decode.high, cell.aggregate_rate());
  if (cell.drafted > 0) {
    std::printf("  %.0f%% of drafts accepted", 100 * cell.accepted / cell.drafted);
  }
  std::printf("%s\n", cell.interrupted ? "  (interrupted)" : "");
  for (std::size_t i = 0; i < cell.errors.size() && i < 3; ++i) {
    std::printf("    error: %s\n", cell.errors[i].c_str());
  }
  std::fflush(stdout);
}

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) {
    return true;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    std::fprintf(stderr, "tandem bench: cannot write %s\n", path.c_str());
  }
  return static_cast<bool>(file);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Runs all cells; a Ctrl-C keeps what is finished.
bench::BenchRun run_cells(const BenchFlags& flags, const std::vector<bench::Cell>& cells) {
  bench::BenchRun run{flags.url, flags.load.model, utc_now(), flags.load.max_tokens, {}};
  const bool live = isatty(STDERR_FILENO) == 1;
  std::printf("%s\n", bench::protocol_notes().c_str());
  std::printf(
      "content   concurrency prompt_tokens prefix  first token, s [95%%]   tokens/s and stream "
      "[95%%]  all streams\n");
  for (const bench::Cell& cell : cells) {
    if (interrupted.load()) {
      break;
    }
    std::atomic<int> finished{0};
    const int total = cell.concurrency * flags.load.requests_per_stream;
    const auto tick = [&finished, total, live] {
      const int done = ++finished;
      if (live) {
        std::fprintf(stderr, "\r  %d of %d requests\033[K\r", done, total);
      }
    };
    run.cells.push_back(bench::run_cell(flags.load, cell, tick, interrupted));
    show_cell(run.cells.back());
  }
  return run;
}

int run_bench(const BenchFlags& given) {
  BenchFlags flags = given;
  auto url = net::parse_url(flags.url);
  if (!url.ok()) {
    return fail(url.status().message(), 2);
  }
  if (url->prefix == "/v1") {
    url->prefix.clear();
  }
  const auto cells = make_cells(flags);
  if (!cells.ok()) {
    return fail(cells.status().message(), 2);
  }
  flags.load.url = *url;
  flags.load.model = flags.model;
  if (flags.model.empty()) {
    const auto model = first_model(*url, flags.load.api_key);
    if (!model.ok()) {
      return fail(model.status().message(), 1);
    }
    flags.load.model = *model;
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  const bench::BenchRun run = run_cells(flags, *cells);
  bool good = write_file(flags.csv_file, bench::to_csv(run)) &&
              write_file(flags.json_file, bench::to_json(run)) &&
              write_file(flags.html_file, bench::to_html(run));
  for (const bench::CellResult& cell : run.cells) {
    good = good && cell.errors.empty() && !cell.samples.empty();
  }
  if (interrupted.load()) {
    return 130;
  }
  return good ? 0 : 1;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return not_found("cannot read {}", path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int run_compare(const CompareFlags& flags) {
  const auto before = read_file(flags.before);
  const auto after = read_file(flags.after);
  if (!before.ok() || !after.ok()) {
    return fail((before.ok() ? after : before).status().message(), 2);
  }
  const auto text = bench::compare_runs(*before, *after, flags.noise);
  if (!text.ok()) {
    return fail(text.status().message(), 2);
  }
  std::printf("%s", text->c_str());
  return 0;
}

void add_compare_verb(CLI::App& parent, int& exit_code) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* verb = parent.add_subcommand("compare", "compare two JSON reports, cell by cell");
  verb->add_option("before", flags->before)->required();
  verb->add_option("after", flags->after)->required();
  verb->add_option("--noise", flags->noise, "share of change that counts as noise")
      ->capture_default_str();
  verb->callback([flags, &exit_code] { exit_code = run_compare(*flags); });
}

void add_run_verb(CLI::App& parent, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* verb = parent.add_subcommand("run", "measure a running server");
  verb->add_option("url", flags->url, "server address")->required();
  verb->add_option("--model", flags->model, "model name; default: the server's first");
  verb->add_option("--api-key", flags->load.api_key, "key, if the server wants one");
  verb->add_option("--content", flags->contents, "prose, code, json, chat, counting")
      ->delimiter(',')
      ->capture_default_str();
  verb->add_option("--concurrency", flags->concurrency, "streams at once")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  verb->add_option("--words", flags->words, "words of filler before the request")
      ->delimiter(',')
      ->check(CLI::Range(0, 2'000'000))
      ->capture_default_str();
  verb->add_option("--max-tokens", flags->load.max_tokens, "tokens per answer")
      ->check(CLI::Range(2, 100'000))
      ->capture_default_str();
  verb->add_option("--requests", flags->load.requests_per_stream, "requests per stream and cell")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  verb->add_option("--seed", flags->load.seed, "seed of the prompts")->capture_default_str();
  verb->add_flag("--warm", flags->warm, "measure each cell also with a repeated prompt");
  verb->add_option("--csv", flags->csv_file, "write rows");
  verb->add_option("--json", flags->json_file, "write a report that compare reads");
  verb->add_option("--html", flags->html_file, "write a page with plots");
  verb->callback([flags, &exit_code] { exit_code = run_bench(*flags); });
}

}  // namespace

void add_bench_verb(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("bench", "measure speed");
  verb->require_subcommand(1);
  add_run_verb(*verb, exit_code);
  add_compare_verb(*verb, exit_code);
}

}  // namespace tandem::apps
