// kernel_bench: how near the CPU kernels come to what the machine can do.
//
// Decode cases read weights larger than the caches and are compared with the read bandwidth
// measured in the same round; prefill cases are compared with the multiply-add rate. Every case is
// checked against the oracle before it is timed. Rounds are repeated, and the median is reported
// with the lowest and highest round: the machine may be shared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/kernels/machine_rates.h"
#include "compute/cpu/cpu_kernels.h"
#include "compute/cpu/fast/thread_pool.h"
#include "compute/tensor/numeric_formats.h"

namespace tandem::bench {
namespace {

using kernels::LinearKind;
using kernels::Numerics;
using tensor::WeightFormat;
using tensor::WeightMatrix;

struct Options {
  bool smoke = false;
  int threads = 2;
  int rounds = 7;
  std::string csv;
  std::string machine = "unnamed";
  std::string commit = "unknown";
};

// Weights of one shape, more of them than fit into the caches.
class WeightSet {
 public:
  WeightSet(WeightFormat format, std::int64_t rows, std::int64_t cols, std::int64_t total_bytes,
            std::uint32_t seed) {
    const WeightMatrix shape{format, rows, cols, nullptr, nullptr};
    const std::int64_t n_scales = format == WeightFormat::kFp8 ? ((rows + 127) / 128) * (cols / 128)
                                  : format == WeightFormat::kFp4 ? rows * (cols / 32)
                                                                 : 0;
    const std::int64_t data_bytes = shape.bytes() - n_scales;
    const std::int64_t n = std::max<std::int64_t>(1, total_bytes / shape.bytes());
    data_.resize(static_cast<std::size_t>(n * data_bytes));
    scales_.resize(static_cast<std::size_t>(n * n_scales));
    fill(format, seed);
    for (std::int64_t i = 0; i < n; ++i) {
      WeightMatrix w = shape;
      w.data = data_.data() + i * data_bytes;
      w.scales = n_scales > 0 ? scales_.data() + i * n_scales : nullptr;
      matrices_.push_back(w);
    }
    data_stride_ = data_bytes;
    scale_stride_ = n_scales;
  }

  const std::vector<WeightMatrix>& matrices() const { return matrices_; }

  std::int64_t bytes() const {
    return static_cast<std::int64_t>(matrices_.size()) * matrices_.front().bytes();
  }

  kernels::ExpertStack stack() const { return {matrices_.front(), data_stride_, scale_stride_}; }

 private:
  // Bytes are drawn from a table of codes of normally distributed weights: what a trained weight
  // looks like after quantisation, and what decides how often subnormal codes occur.
  void fill(WeightFormat format, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<std::uint8_t> codes(4096);
    for (std::uint8_t& code : codes) {
      code = random_code(format, engine);
    }
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const bool low_byte = format == WeightFormat::kBf16 && i % 2 == 0;
      data_[i] = low_byte ? static_cast<std::uint8_t>(state >> 56) : codes[state >> 52];
    }
    std::fill(scales_.begin(), scales_.end(), std::uint8_t{119});
  }

  static std::uint8_t random_code(WeightFormat format, std::mt19937& engine) {
    std::normal_distribution<float> normal(0, 1);
    switch (format) {
      case WeightFormat::kFp8:  // the largest of a block of 16384 is near 4 sigma = 448
        return tensor::float_to_e4m3(std::clamp(112.0F * normal(engine), -448.0F, 448.0F));
      case WeightFormat::kFp4: {  // the largest of a group of 32 is near 2 sigma = 6
        const int low = tensor::float_to_e2m1(3.0F * normal(engine));
        return static_cast<std::uint8_t>(low | tensor::float_to_e2m1(3.0F * normal(engine)) << 4);
      }
      default:
        return static_cast<std::uint8_t>(tensor::float_to_bf16(0.05F * normal(engine)) >> 8);
    }
  }

  std::vector<std::uint8_t> data_;
  std::vector<std::uint8_t> scales_;
  std::vector<WeightMatrix> matrices_;
  std::int64_t data_stride_ = 0;
  std::int64_t scale_stride_ = 0;
};

std::vector<float> random_rows(std::int64_t n, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) {
    value = normal(engine);
  }
  return values;
}

// Relative distance of two vectors.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    error += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(error / norm);
}

// One thing to time: `run` does `amount` units (bytes or operations) of work.
struct Case {
  std::string name;
  bool is_bandwidth = true;  // else arithmetic
  double amount = 0;
  std::function<bool()> check;
  std::function<void()> run;
};

struct Setup {
  Options options;
  std::unique_ptr<kernels::Kernels> fast;
  std::unique_ptr<kernels::Kernels> oracle;
};

// Unrounded outputs, so that a right kernel is within float noise of the oracle.
bool linear_is_right(Setup& setup, WeightMatrix w, const std::vector<float>& x,
                     std::int64_t n_rows) {
  w.rows = std::min<std::int64_t>(w.rows, 32);  // the oracle is slow; 32 outputs show the decoding
  std::vector<float> expected(static_cast<std::size_t>(n_rows * w.rows));
  std::vector<float> actual(expected.size(), NAN);
  setup.oracle->linear(
      {n_rows, x.data(), w.cols, w, LinearKind::kPartial, expected.data(), w.rows});
  setup.fast->linear({n_rows, x.data(), w.cols, w, LinearKind::kPartial, actual.data(), w.rows});
  return distance(actual, expected) < 1e-5;
}

Case linear_case(Setup& setup, std::string name, std::shared_ptr<WeightSet> weights,
                 std::int64_t n_rows, bool is_bandwidth) {
  const WeightMatrix& shape = weights->matrices().front();
  auto x = std::make_shared<std::vector<float>>(random_rows(n_rows * shape.cols, 7));
  auto out = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n_rows * shape.rows));
  Case result;
  result.name = std::move(name);
  result.is_bandwidth = is_bandwidth;
  const auto n_matrices = static_cast<double>(weights->matrices().size());
  result.amount = is_bandwidth ? static_cast<double>(weights->bytes())
                               : 2.0 * n_matrices * static_cast<double>(n_rows * shape.rows) *
                                     static_cast<double>(shape.cols);
  result.check = [&setup, weights, x, n_rows] {
    return linear_is_right(setup, weights->matrices().front(), *x, n_rows);
  };
  result.run = [&setup, weights, x, out, n_rows] {
    for (const WeightMatrix& w : weights->matrices()) {
      setup.fast->linear(
          {n_rows, x->data(), w.cols, w, LinearKind::kQuantised, out->data(), w.rows});
    }
  };
  return result;
}

// The experts op of one token after another, each with other experts, so that weights come from
// memory as in a model of many layers.
Case experts_case(Setup& setup, std::int32_t hidden, std::int64_t inter, std::int64_t total_bytes) {
  constexpr std::int32_t kTopK = 6;
  const auto up = [&](std::uint32_t seed) {
    return std::make_shared<WeightSet>(WeightFormat::kFp4, inter, hidden, total_bytes / 3, seed);
  };
  auto w1 = up(1);
  auto w3 = up(2);
  auto w2 = std::make_shared<WeightSet>(WeightFormat::kFp4, hidden, inter, total_bytes / 3, 3);
  auto s1 = std::make_shared<WeightSet>(WeightFormat::kFp8, inter, hidden, 1, 4);
  auto s3 = std::make_shared<WeightSet>(WeightFormat::kFp8, inter, hidden, 1, 5);
  auto s2 = std::make_shared<WeightSet>(WeightFormat::kFp8, hidden, inter, 1, 6);
  auto x = std::make_shared<std::vector<float>>(random_rows(hidden, 8));
  const auto step = [=](kernels::Kernels& ops, std::int32_t first, std::vector<float>& out) {
    std::int32_t experts[kTopK];
    const std::vector<float> weights(kTopK, 0.25F);
    for (std::int32_t k = 0; k < kTopK; ++k) {
      experts[k] = first + k;
    }
    kernels::ExpertsArgs args{1,
                              hidden,
                              kTopK,
                              10,
                              x->data(),
                              experts,
                              weights.data(),
                              w1->stack(),
                              w3->stack(),
                              w2->stack(),
                              s1->matrices().front(),
                              s3->matrices().front(),
                              s2->matrices().front(),
                              out.data()};
    ops.experts(args);
  };
  const auto n_steps = static_cast<std::int32_t>(w1->matrices().size()) / kTopK;
  auto out = std::make_shared<std::vector<float>>(static_cast<std::size_t>(hidden));
  Case result;
  result.name = "experts_fp4_rows1";
  result.amount = static_cast<double>(n_steps) *
                  static_cast<double>(kTopK * 3 * w1->matrices().front().bytes() +
                                      3 * s1->matrices().front().bytes());
  result.check = [&setup, step, hidden] {
    std::vector<float> expected(static_cast<std::size_t>(hidden));
    std::vector<float> actual(expected.size(), NAN);
    step(*setup.oracle, 0, expected);
    step(*setup.fast, 0, actual);
    return distance(actual, expected) < 1e-2;  // bf16 and fp8 roundings may flip
  };
  result.run = [&setup, step, n_steps, out] {
    for (std::int32_t i = 0; i < n_steps; ++i) {
      step(*setup.fast, i * kTopK, *out);
    }
  };
  return result;
}

std::vector<Case> make_cases(Setup& setup) {
  const bool smoke = setup.options.smoke;
  const std::int64_t size = smoke ? 256 : 4096;
  const std::int64_t set_bytes = smoke ? 200000 : std::int64_t{256} << 20;
  const auto set = [&](WeightFormat format, std::uint32_t seed) {
    return std::make_shared<WeightSet>(format, size, size, set_bytes, seed);
  };
  const auto fp8 = set(WeightFormat::kFp8, 11);
  const auto fp4 = set(WeightFormat::kFp4, 12);
  const auto bf16 = set(WeightFormat::kBf16, 13);
  std::vector<Case> cases;
  for (const std::int64_t rows : {1, 2, 3, 4, 8}) {
    cases.push_back(linear_case(setup, fmt::format("gemv_fp8_rows{}", rows), fp8, rows, true));
    cases.push_back(linear_case(setup, fmt::format("gemv_fp4_rows{}", rows), fp4, rows, true));
  }
  cases.push_back(linear_case(setup, "gemv_bf16_rows1", bf16, 1, true));
  cases.push_back(experts_case(setup, static_cast<std::int32_t>(size), size / 2,
                               smoke ? 2000000 : std::int64_t{400} << 20));
  const auto one = [&](WeightFormat format, std::uint32_t seed) {
    return std::make_shared<WeightSet>(format, size, size, 1, seed);
  };
  cases.push_back(linear_case(setup, "gemm_fp8_rows256", one(WeightFormat::kFp8, 14), 256, false));
  cases.push_back(linear_case(setup, "gemm_fp4_rows256", one(WeightFormat::kFp4, 15), 256, false));
  cases.push_back(
      linear_case(setup, "gemm_bf16_rows256", one(WeightFormat::kBf16, 16), 256, false));
  return cases;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return text;
}

struct Report {
  explicit Report(const Options& chosen) : options(chosen) {
    if (!options.csv.empty()) {
      csv.open(options.csv, std::ios::app);
    }
  }

  void row(const std::string& name, const std::vector<double>& values, const std::string& unit,
           double ratio) {
    const auto range = std::minmax_element(values.begin(), values.end());
    fmt::print("{:<22} {:>8.2f} {:<8} ({:.2f} .. {:.2f})   {:.2f} of the machine\n", name,
               median(values), unit, *range.first, *range.second, ratio);
    std::fflush(stdout);
    if (csv.is_open()) {
      csv << fmt::format("{},{},{},{},{:.3f},{},{:.3f}\n", today(), options.machine, options.commit,
                         name, median(values), unit, ratio);
    }
  }

  const Options& options;
  std::ofstream csv;
};

// Each round measures the machine right beside the case: neighbours slow both.
void time_case(const Case& item, cpu::ThreadPool& pool, const std::vector<std::uint8_t>& buffer,
               const Options& options, Report& report, std::vector<double>& machine) {
  const std::int64_t spin_rounds = options.smoke ? 10000 : 20000000;
  std::vector<double> rates;
  std::vector<double> ratios;
  item.run();  // grows scratch memory, touches pages
  for (int round = 0; round < options.rounds; ++round) {
    const double before = item.is_bandwidth
                              ? static_cast<double>(buffer.size()) / seconds_to_read(pool, buffer)
                              : peak_flops(pool, spin_rounds);
    const double rate = item.amount / seconds_of(item.run);
    rates.push_back(rate * 1e-9);
    ratios.push_back(rate / before);
    machine.push_back(before * 1e-9);
  }
  report.row(item.name, rates, item.is_bandwidth ? "GB/s" : "GFLOP/s", median(ratios));
}

int run(const Options& options) {
  Setup setup{options, cpu::make_fast_kernels(Numerics::kNative, options.threads),
              cpu::make_reference_kernels(Numerics::kNative)};
  const std::vector<Case> cases = make_cases(setup);
  for (const Case& item : cases) {
    if (!item.check()) {
      fmt::print(stderr, "{}: the kernel disagrees with the oracle; nothing was timed\n",
                 item.name);
      return 1;
    }
  }
  cpu::ThreadPool pool(options.threads);
  const std::vector<std::uint8_t> buffer(
      options.smoke ? std::size_t{2} << 20 : std::size_t{512} << 20, 1);
  seconds_to_read(pool, buffer);
  Report report(options);
  std::vector<double> bandwidths;
  std::vector<double> flops;
  for (const Case& item : cases) {
    time_case(item, pool, buffer, options, report, item.is_bandwidth ? bandwidths : flops);
  }
  report.row("machine_read", bandwidths, "GB/s", 1);
  report.row("machine_multiply_add", flops, "GFLOP/s", 1);
  return 0;
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::Options options;
  CLI::App app{"Times the CPU kernels against the machine's own rates"};
  app.add_flag("--smoke", options.smoke, "Tiny sizes, one round: only that everything runs");
  app.add_option("--threads", options.threads, "Threads of the kernels and of the measurements");
  app.add_option("--rounds", options.rounds, "Rounds of which the median is taken");
  app.add_option("--csv", options.csv, "Append rows to this file");
  app.add_option("--machine", options.machine, "Name of the machine in the rows");
  app.add_option("--commit", options.commit, "Commit in the rows");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.rounds = 1;
  }
  return tandem::bench::run(options);
}
