#include "serving/server/request_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <vector>

namespace tandem::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

double seconds(TimeUs us) {
  constexpr double kPerSecond = 1e6;
  return static_cast<double>(us) / kPerSecond;
}

const prometheus::Histogram::BucketBoundaries& latency_buckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600};
  return buckets;
}

// One family with one value, read off the engine at scrape time.
class EnginePage {
 public:
  explicit EnginePage(std::string model) : model_(std::move(model)) {}

  void counter(const char* name, const char* help, std::int64_t value) {
    add(name, help, MetricType::Counter, value, {});
  }

  void gauge(const char* name, const char* help, std::int64_t value) {
    add(name, help, MetricType::Gauge, value, {});
  }

  void add(const char* name, const char* help, MetricType type, std::int64_t value,
           std::vector<ClientMetric::Label> labels) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({name, help, type, {}});
    }
    labels.push_back({"model_name", model_});
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = static_cast<double>(value);
    metric.gauge.value = static_cast<double>(value);
    families_.back().metric.push_back(std::move(metric));
  }

  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::string model_;
  std::vector<MetricFamily> families_;
};

void add_engine(EnginePage& page, const runtime::EngineStats& stats) {
  page.gauge("vllm:num_requests_running", "Sequences that have a slot", stats.running);
  page.gauge("vllm:num_requests_waiting", "Sequences that wait for a slot", stats.waiting);
  page.counter("vllm:prompt_tokens_total", "Prompt tokens read", stats.prompt_tokens_total);
  page.counter("vllm:generation_tokens_total", "Tokens generated", stats.generation_tokens_total);
  page.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
               stats.prompt_tokens_total);
  page.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache",
               stats.cached_tokens_total);
  page.counter("vllm:num_preemptions_total", "Sequences that gave their slot up for a while",
               stats.preemptions_total);
  page.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens drafted",
               stats.drafted_tokens_total);
  page.counter("vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens accepted",
               stats.accepted_tokens_total);
  page.counter("tandem_steps_total", "Forward passes", stats.steps_total);
  page.counter("tandem_sequences_cancelled_total", "Sequences cancelled",
               stats.finished_cancelled_total);
  page.counter("tandem_sequences_failed_total", "Sequences ended by a fault",
               stats.finished_error_total);
  page.gauge("tandem_kv_pages", "Pages of compressed rows", stats.kv_pages_total);
  page.gauge("tandem_kv_pages_used", "Pages in use", stats.kv_pages_used);
  for (std::size_t i = 0; i < stats.drafted_by_position.size(); ++i) {
    page.add("tandem_drafted_by_position_total", "Tokens drafted at a depth", MetricType::Counter,
             stats.drafted_by_position[i], {{"position", std::to_string(i)}});
  }
  for (std::size_t i = 0; i < stats.accepted_by_position.size(); ++i) {
    page.add("tandem_accepted_by_position_total", "Drafts accepted at a depth", MetricType::Counter,
             stats.accepted_by_position[i], {{"position", std::to_string(i)}});
  }
}

void add_health(EnginePage& page, const runtime::EngineHealth& health) {
  page.gauge("tandem_healthy", "1 if tokens are generated when they are due", health.ok ? 1 : 0);
  for (const runtime::RankHealth& rank : health.ranks) {
    page.add("tandem_rank_alive", "1 if the rank answers", MetricType::Gauge, rank.alive ? 1 : 0,
             {{"rank", std::to_string(rank.rank)}, {"host", rank.host}});
  }
}

}  // namespace

struct RequestMetrics::State {
  explicit State(std::string name) : model(std::move(name)) {}

  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter()
        .Name(name)
        .Help(help)
        .Labels({{"model_name", model}})
        .Register(registry);
  }

  prometheus::Histogram& histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help)
        .Labels({{"model_name", model}})
        .Register(registry)
        .Add({}, latency_buckets());
  }

  std::string model;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& success =
      counters("vllm:request_success_total", "Choices that their client got whole");
  prometheus::Counter& aborts =
      counters("tandem_requests_aborted_total", "Requests whose client left or that were ended")
          .Add({});
  prometheus::Family<prometheus::Counter>& responses =
      counters("tandem_http_responses_total", "Answers by status");
  prometheus::Histogram& ttft =
      histogram("vllm:time_to_first_token_seconds", "From the request to its first token");
  prometheus::Histogram& itl =
      histogram("vllm:time_per_output_token_seconds", "Between the steps of one stream");
  prometheus::Histogram& whole =
      histogram("vllm:e2e_request_latency_seconds", "From the request to the end of its answer");
};

RequestMetrics::RequestMetrics(const std::string& model_name)
    : state_(std::make_unique<State>(model_name)) {
  for (const char* reason : {"stop", "length", "tool_calls"}) {
    state_->success.Add({{"finished_reason", reason}});
  }
}

RequestMetrics::~RequestMetrics() = default;

void RequestMetrics::finished(const std::string& reason) {
  state_->success.Add({{"finished_reason", reason}}).Increment();
}

void RequestMetrics::aborted() {
  state_->aborts.Increment();
}

void RequestMetrics::first_token(TimeUs since_request) {
  state_->ttft.Observe(seconds(since_request));
}

void RequestMetrics::next_token(TimeUs since_last) {
  state_->itl.Observe(seconds(since_last));
}

void RequestMetrics::whole_request(TimeUs since_request) {
  state_->whole.Observe(seconds(since_request));
}

void RequestMetrics::response(int http_status) {
  state_->responses.Add({{"status", std::to_string(http_status)}}).Increment();
}

std::string RequestMetrics::page(const runtime::EngineStats& stats,
                                 const runtime::EngineHealth& health,
                                 std::int64_t connections) const {
  EnginePage page(state_->model);
  add_engine(page, stats);
  add_health(page, health);
  page.gauge("tandem_connections", "Open client connections", connections);
  std::vector<MetricFamily> families = page.take();
  for (MetricFamily& family : state_->registry.Collect()) {
    families.push_back(std::move(family));
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace tandem::server
