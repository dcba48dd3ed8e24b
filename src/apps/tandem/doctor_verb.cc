#include "apps/tandem/doctor_verb.h"

#include <cstdio>
#include <memory>

#include "apps/tandem/cluster_flags.h"
#include "apps/tandem/exit_codes.h"
#include "foundation/json/json.h"
#include "operations/cluster/doctor.h"
#include "operations/cluster/link_probe.h"

namespace tandem::apps {
namespace {

struct DoctorFlags {
  std::string file;
  bool json = false;
  bool fix = false;
  bool all = false;
  bool no_link = false;
};

struct AgentFlags {
  std::string address;
  std::int64_t port = 0;
};

void print(const cluster::DoctorReport& report, const DoctorFlags& flags) {
  const std::string text =
      flags.json ? json::dump(report.to_json()) + "\n" : report.to_text(flags.all);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int run_doctor(const DoctorFlags& flags) {
  const auto pair = open_cluster(flags.file);
  if (!pair.ok()) {
    std::fprintf(stderr, "tandem doctor: %s\n", pair.status().message().c_str());
    return kExitUsage;
  }
  cluster::DoctorOptions options;
  options.measure_link = !flags.no_link;
  auto report = cluster::run_doctor(pair->config, *pair->head, *pair->worker, options);
  if (flags.fix) {
    for (const std::string& line : cluster::apply_fixes(report, *pair->head, *pair->worker)) {
      std::fprintf(stderr, "fix: %s\n", line.c_str());
    }
    report = cluster::run_doctor(pair->config, *pair->head, *pair->worker, options);
  }
  print(report, flags);
  return report.exit_code();
}

int run_agent(const AgentFlags& flags) {
  const Status served = cluster::serve_link_probe(flags.address, flags.port);
  if (!served.ok()) {
    std::fprintf(stderr, "tandem agent: %s\n", served.message().c_str());
  }
  return served.ok() ? kExitOk : kExitFailure;
}

}  // namespace

void add_doctor_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* doctor = app.add_subcommand("doctor", "look for what would go wrong, on both machines");
  add_cluster_flag(*doctor, flags->file);
  doctor->add_flag("--json", flags->json, "print JSON");
  doctor->add_flag("--all", flags->all, "show also what is well");
  doctor->add_flag("--fix", flags->fix, "do the fixes that are safe, then look again");
  doctor->add_flag("--no-link", flags->no_link, "leave the bandwidth measurement out");
  doctor->callback([flags, &exit_code] { exit_code = run_doctor(*flags); });
  auto agent_flags = std::make_shared<AgentFlags>();
  CLI::App* agent = app.add_subcommand("agent", "what the head asks of the worker")->group("");
  agent->add_option("--probe", agent_flags->address, "fabric address to listen on")->required();
  agent->add_option("--port", agent_flags->port, "port to listen on")->required();
  agent->callback([agent_flags, &exit_code] { exit_code = run_agent(*agent_flags); });
}

}  // namespace tandem::apps
