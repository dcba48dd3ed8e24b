#include "apps/tandem/serve_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>

#include "apps/tandem/exit_codes.h"
#include "apps/tandem/rank_model.h"
#include "apps/tandem/stop_signal.h"
#include "compute/comm/mpi_communicator.h"
#include "engine/runtime/model_engine.h"
#include "engine/runtime/worker.h"
#include "foundation/obs/log.h"
#include "model/text/tokenizer.h"
#include "serving/server/server.h"

namespace tandem::apps {
namespace {

// Start-up news of rank 0, with the seconds since the process began to load.
class StartReport {
 public:
  explicit StartReport(bool silent) : silent_(silent) {}

  void operator()(const std::string& line) const {
    if (!silent_) {
      std::fprintf(stderr, "[%7.2f s] %s\n", seconds(), line.c_str());
    }
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  bool silent_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// The first fault of the engine; written on an engine thread, read by the main one.
class FaultBox {
 public:
  void set(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) {
      status_ = status;
    }
  }

  Status get() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  mutable std::mutex mutex_;
  Status status_;
};

// mpirun waits for a host that is gone. A child that outlives us ends it if it has not ended
// itself.
void limit_mpirun(pid_t mpirun) {
  constexpr unsigned kGraceSeconds = 2;
  std::ifstream comm("/proc/" + std::to_string(mpirun) + "/comm");
  std::string name;
  std::getline(comm, name);
  if (name != "mpirun" && name != "orterun") {
    return;
  }
  if (fork() == 0) {
    setsid();
    sleep(kGraceSeconds);
    kill(mpirun, SIGKILL);
    _exit(0);
  }
}

// Says why and ends all ranks, whatever their threads are waiting for.
[[noreturn]] void end_job(comm::Communicator& communicator, const Status& why) {
  std::fprintf(stderr, "tandem: rank %d on %s: %s\n", communicator.rank(), host_name().c_str(),
               why.to_string().c_str());
  const bool is_fault = StopSignal::wait(0) || communicator.rank() != 0;
  limit_mpirun(getppid());
  const int exit_code = is_fault ? kExitEngineFault : kExitFailure;
  communicator.abort(exit_code);
  _exit(exit_code);  // g++ 12 does not see that a virtual function never returns
}

runtime::EngineOptions engine_options(const ServeConfig& config, const v4::ModelConfig& model,
                                      const text::Tokenizer& tokenizer, FaultBox& fault) {
  runtime::EngineOptions options;
  options.max_waiting = config.max_waiting;
  options.prefill_tokens = static_cast<std::int32_t>(config.prefill_tokens);
  options.prefill_tokens_busy = std::min(options.prefill_tokens_busy, options.prefill_tokens);
  options.max_drafts = draft_tokens_of(config, model);
  options.n_snapshots = static_cast<std::int32_t>(config.prefix_snapshots);
  options.think_end_token = tokenizer.special().think_end;
  options.host = host_name();
  constexpr TimeUs kSecondUs = 1'000'000;
  options.stall_us = config.stall_s * kSecondUs;
  options.on_fault = [&fault](const Status& status) {
    fault.set(status);
    StopSignal::request();
  };
  return options;
}

std::string model_name(const ServeConfig& config) {
  if (!config.model_name.empty()) {
    return config.model_name;
  }
  const std::filesystem::path path = std::filesystem::path(config.model).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

protocol::ModelInfo model_info(const ServeConfig& config, const v4::ModelConfig& model) {
  protocol::ModelInfo info;
  info.name = model_name(config);
  info.created = system_clock().unix_seconds();
  info.max_context_tokens = config.max_context_tokens;
  info.format =
      model.draft == v4::DraftKind::kDspark ? text::ChatFormat::k0731 : text::ChatFormat::kPreview;
  return info;
}

server::ServerConfig server_config(const ServeConfig& config) {
  server::ServerConfig out;
  out.host = config.host;
  out.port = static_cast<std::uint16_t>(config.port);
  out.state_dir = config.state_dir;
  out.api_keys_file = config.api_keys_file;
  out.tls_certificate = config.tls_certificate;
  out.tls_key = config.tls_key;
  out.allow_public_without_key = config.allow_public_without_key;
  return out;
}

// Serves until a stop is asked for or the engine is poisoned. The result is what went wrong.
Status run_server(const ServeConfig& config, const RankModel& rank, runtime::ModelEngine& engine,
                  const text::Tokenizer& tokenizer, const FaultBox& fault, const StartReport& say) {
  server::Server server(server_config(config), engine, tokenizer,
                        model_info(config, rank.opened.config));
  TANDEM_TRY(server.start());
  StopSignal::set_ready();
  say(fmt::format("ready: {}://{}:{}/v1, model name '{}'",
                  config.tls_certificate.empty() ? "http" : "https", config.host, server.port(),
                  model_name(config)));
  constexpr int kForever = -1;
  while (!StopSignal::wait(kForever)) {
  }
  const Status why = fault.get();
  say(why.ok() ? "stopping: new requests are refused, running ones are ended"
               : "engine fault: " + why.message());
  server.stop();
  return why;
}

Status lead(const ServeConfig& config, comm::Communicator& communicator, const StartReport& say) {
  TANDEM_ASSIGN(const auto rank, load_rank_model(config, communicator, std::cref(say)));
  TANDEM_ASSIGN(const text::Tokenizer tokenizer, load_tokenizer(rank->opened));
  FaultBox fault;
  TANDEM_ASSIGN(const auto engine,
                runtime::make_engine(engine_options(config, rank->opened.config, tokenizer, fault),
                                     *rank->forward, communicator));
  const Status served = run_server(config, *rank, *engine, tokenizer, fault, say);
  if (!served.ok()) {
    end_job(communicator, served);  // threads may hang in a step: nothing is waited for or freed
  }
  return engine->stop();
}

Status follow(const ServeConfig& config, comm::Communicator& communicator, const StartReport& say) {
  TANDEM_ASSIGN(const auto rank, load_rank_model(config, communicator, std::cref(say)));
  StopSignal::set_ready();  // the head decides when to stop
  runtime::WorkerOptions options;
  options.n_snapshots = static_cast<std::int32_t>(config.prefix_snapshots);
  options.host = host_name();
  return runtime::run_worker(options, *rank->forward, communicator);
}

// The exit code, unless the job has to be ended on the spot.
int live(const ServeConfig& config, comm::Communicator& communicator) {
  obs::set_log_level(config.log_level);
  const bool is_head = communicator.rank() == 0;
  const StartReport say(!is_head);
  const Status status =
      is_head ? lead(config, communicator, say) : follow(config, communicator, say);
  if (status.ok()) {
    say("stopped");
    return kExitOk;
  }
  end_job(communicator, status);
}

}  // namespace

int serve_alone(const ServeConfig& config) {
  const auto communicator = comm::make_single_communicator();
  return live(config, *communicator);
}

int serve_as_rank(const ServeConfig& config) {
  auto communicator = comm::make_mpi_communicator();
  if (!communicator.ok()) {
    std::fprintf(stderr, "tandem rank: %s\n", communicator.status().message().c_str());
    return kExitFailure;
  }
  return live(config, **communicator);
}

}  // namespace tandem::apps
