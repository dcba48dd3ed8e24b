// What one token costs on the head: sampling from the real vocabulary, by kind of parameters.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "engine/sampling/race.h"
#include "engine/sampling/sampler.h"
#include "foundation/base/random.h"

namespace tandem::sampling {
namespace {

constexpr std::size_t kVocab = 129'280;

// Shaped like a language model's: a few likely tokens over a broad bell of unlikely ones.
std::vector<float> make_logits() {
  Random random(7);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) {
    double sum = 0.0;
    for (int i = 0; i < 6; ++i) {
      sum += random.uniform() - 0.5;
    }
    logit = static_cast<float>(3.0 * sum);
  }
  for (int i = 0; i < 40; ++i) {
    logits[random.below(kVocab)] = static_cast<float>(10.0 + 6.0 * random.uniform());
  }
  return logits;
}

void run(benchmark::State& state, const SamplingParams& params) {
  const std::vector<float> logits = make_logits();
  Sampler sampler;
  SampleInput input;
  input.logits = logits;
  for (auto _ : state) {
    ++input.position;
    benchmark::DoNotOptimize(sampler.sample(params, input)->token);
  }
}

void greedy(benchmark::State& state) {
  SamplingParams params;
  params.temperature = 0.0F;
  run(state, params);
}

void plain(benchmark::State& state) {
  run(state, {});
}

void top_p(benchmark::State& state) {
  SamplingParams params;
  params.top_p = 0.95F;
  run(state, params);
}

void top_k(benchmark::State& state) {
  SamplingParams params;
  params.top_k = 40;
  run(state, params);
}

void logprobs(benchmark::State& state) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.n_logprobs = 20;
  run(state, params);
}

void draft(benchmark::State& state) {
  const std::vector<float> logits = make_logits();
  Position position = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(draw_draft(logits, 1.0F, 3, ++position));
  }
}

BENCHMARK(greedy)->Unit(benchmark::kMicrosecond);
BENCHMARK(plain)->Unit(benchmark::kMicrosecond);
BENCHMARK(top_p)->Unit(benchmark::kMicrosecond);
BENCHMARK(top_k)->Unit(benchmark::kMicrosecond);
BENCHMARK(logprobs)->Unit(benchmark::kMicrosecond);
BENCHMARK(draft)->Unit(benchmark::kMicrosecond);

// A draft from the same logits is the sampled token, or the figures are of different work.
bool answers_are_right() {
  const std::vector<float> logits = make_logits();
  Sampler sampler;
  SampleInput input;
  input.logits = logits;
  input.seed = 3;
  for (input.position = 0; input.position < 20; ++input.position) {
    if (sampler.sample({}, input)->token != draw_draft(logits, 1.0F, 3, input.position)) {
      std::fprintf(stderr, "sample and draft differ at %lld\n",
                   static_cast<long long>(input.position));
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace tandem::sampling

int main(int argc, char** argv) {
  if (!tandem::sampling::answers_are_right()) {
    return 1;
  }
  if (argc > 1 && std::string_view(argv[1]) == "--smoke") {
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
