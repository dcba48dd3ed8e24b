#include "apps/tandem/rank_launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "apps/tandem/exit_codes.h"
#include "apps/tandem/stop_signal.h"

namespace tandem::apps {
namespace {

constexpr int kPollMs = 200;
constexpr int kOrderlyStopMs = 30'000;  // streams end, ranks leave
constexpr int kKillMs = 5'000;

// In the child. mpirun gets its own group, so that Ctrl-C in the terminal reaches only us.
[[noreturn]] void become(const std::vector<std::string>& command, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) {
    _exit(kExitFailure);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  std::fprintf(stderr, "tandem: cannot start %s: %s; install Open MPI (openmpi-bin)\n", argv[0],
               std::strerror(errno));
  _exit(kExitFailure);
}

// Asks, then insists.
class Stopper {
 public:
  explicit Stopper(pid_t child) : child_(child) {}

  void tick() {
    if (waited_ms_ == 0) {
      kill(child_, SIGUSR1);
    } else if (waited_ms_ == kOrderlyStopMs) {
      std::fprintf(stderr, "tandem: ranks still run after %d s; ending them\n",
                   kOrderlyStopMs / 1000);
      kill(child_, SIGTERM);
    } else if (waited_ms_ == kOrderlyStopMs + kKillMs) {
      kill(child_, SIGKILL);
    }
    waited_ms_ += kPollMs;
  }

 private:
  pid_t child_;
  int waited_ms_ = 0;
};

int exit_code_of(int status) {
  if (WIFEXITED(status)) {
    return WEXITSTATUS(status);
  }
  std::fprintf(stderr, "tandem: mpirun ended by signal %d\n", WTERMSIG(status));
  return kExitEngineFault;
}

int wait_for(pid_t child) {
  Stopper stopper(child);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) {
      return exit_code_of(status);
    }
    if (StopSignal::wait(kPollMs)) {
      stopper.tick();
      usleep(kPollMs * 1000);
    }
  }
}

}  // namespace

std::string common_network(const std::string& hosts) {
  constexpr int kBits = 32;
  std::istringstream names(hosts);
  std::uint32_t first = 0;
  int prefix = kBits;
  for (std::string name; std::getline(names, name, ',');) {
    in_addr address{};
    if (inet_pton(AF_INET, name.c_str(), &address) != 1) {
      return "";
    }
    const std::uint32_t number = ntohl(address.s_addr);
    first = first == 0 ? number : first;
    while (prefix > 0 && (first ^ number) >> (kBits - prefix) != 0) {
      --prefix;
    }
  }
  if (first == 0 || prefix == 0) {
    return "";
  }
  in_addr base{};
  base.s_addr = htonl(first & ~std::uint32_t{0} << (kBits - prefix));
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &base, text.data(), text.size());
  return fmt::format("{}/{}", text.data(), prefix);
}

std::vector<std::string> rank_command(const ServeConfig& config, const std::string& self,
                                      const std::vector<std::string>& rank_flags) {
  std::vector<std::string> command = {"mpirun", "--quiet", "-n", std::to_string(config.tp)};
  const auto add = [&command](std::initializer_list<const char*> words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  if (geteuid() == 0) {
    add({"--allow-run-as-root"});
  }
  // Ranks place their own threads, and sleep when idle; ours is the only job on these cores.
  add({"--bind-to", "none", "--oversubscribe", "--mca", "pml", "ob1"});
  if (config.hosts.empty()) {
    // Shared memory without process_vm_readv, which containers refuse with a warning.
    add({"--mca", "btl", "self,vader", "--mca", "btl_vader_single_copy_mechanism", "none"});
    add({"--mca", "plm", "isolated"});  // no ssh needed
  } else {
    add({"--host", config.hosts.c_str(), "--map-by", "node", "--mca", "btl", "self,tcp"});
    add({"--mca", "plm_rsh_agent", config.ssh_command.c_str()});
  }
  const std::string network = common_network(config.hosts);
  if (!network.empty()) {  // and not over the slow network that the hosts share too
    add({"--mca", "btl_tcp_if_include", network.c_str(), "--mca", "oob_tcp_if_include",
         network.c_str()});
  }
  command.push_back(self);
  command.emplace_back("rank");
  command.insert(command.end(), rank_flags.begin(), rank_flags.end());
  return command;
}

int launch_ranks(const ServeConfig& config, const std::vector<std::string>& rank_flags) {
  StopSignal::set_ready();
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::vector<std::string> command = rank_command(config, self, rank_flags);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    std::fprintf(stderr, "tandem: fork: %s\n", std::strerror(errno));
    return kExitFailure;
  }
  if (child == 0) {
    become(command, parent);
  }
  return wait_for(child);
}

}  // namespace tandem::apps
