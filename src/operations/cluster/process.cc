#include "operations/cluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace tandem::cluster {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{16} << 20;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct Pipe {
  int read = -1;
  int write = -1;
};

bool open_pipe(Pipe& pipe) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) {
    return false;
  }
  pipe.read = fds[0];
  pipe.write = fds[1];
  return true;
}

void close_fd(int& fd) {
  if (fd >= 0) {
    close(fd);
    fd = -1;
  }
}

// In the child, after fork: only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, char* const* environment, int in, int out, int err,
                         const SpawnOptions& options) {
  if (options.new_session) {
    setsid();
  } else {
    setpgid(0, 0);
  }
  if (options.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvpe(argv[0], argv, environment);
  _exit(127);
}

// Appends what is there; false at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0 && text.size() < kMaxOutput) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) {
    out.push_back(word.data());
  }
  out.push_back(nullptr);
  return out;
}

// Forks with the three streams in place; the parent's copies stay open.
pid_t start(const std::vector<std::string>& argv, int in, int out, int err,
            const SpawnOptions& options) {
  std::vector<std::string> words = argv;
  std::vector<std::string> variables = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    variables.emplace_back(*entry);
  }
  std::vector<char*> arguments = pointers(words);
  std::vector<char*> environment = pointers(variables);
  const pid_t pid = fork();
  if (pid == 0) {
    become(arguments.data(), environment.data(), in, out, err, options);
  }
  if (pid > 0 && !options.new_session) {
    setpgid(pid, pid);
  }
  return pid;
}

}  // namespace

CommandResult run_process(const std::vector<std::string>& argv, std::int64_t timeout_ms) {
  CommandResult result;
  Pipe out;
  Pipe err;
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (argv.empty() || null < 0 || !open_pipe(out) || !open_pipe(err)) {
    close_fd(null);
    result.exit_code = 127;
    result.err = "cannot open pipes";
    return result;
  }
  const pid_t pid = start(argv, null, out.write, err.write, {});
  close_fd(null);
  close_fd(out.write);
  close_fd(err.write);
  const std::int64_t deadline = now_ms() + timeout_ms;
  bool ended = pid < 0;
  int status = 127 << 8;
  while (!ended && (out.read >= 0 || err.read >= 0)) {
    std::array<pollfd, 2> fds{{{out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};
    const std::int64_t left = deadline - now_ms();
    if (left <= 0) {
      result.timed_out = true;
      break;
    }
    // A child may leave a grandchild behind that keeps the pipes: its own end is what counts.
    poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left, 100)));
    if (fds[0].revents != 0 && !drain(out.read, result.out)) {
      close_fd(out.read);
    }
    if (fds[1].revents != 0 && !drain(err.read, result.err)) {
      close_fd(err.read);
    }
    if (fds[0].revents == 0 && fds[1].revents == 0) {
      ended = waitpid(pid, &status, WNOHANG) == pid;
    }
  }
  close_fd(out.read);
  close_fd(err.read);
  // The streams may close before the program ends.
  while (!ended && !result.timed_out) {
    ended = waitpid(pid, &status, WNOHANG) == pid;
    result.timed_out = !ended && now_ms() >= deadline;
    if (!ended && !result.timed_out) {
      usleep(2'000);
    }
  }
  result.exit_code = ended ? exit_code_of(status) : stop_group(pid, 0);
  return result;
}

Result<Child> spawn_process(const std::vector<std::string>& argv, const SpawnOptions& options) {
  Child child;
  Pipe in;
  Pipe output;
  int in_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int out_fd = -1;
  if (options.pipe_stdin && open_pipe(in)) {
    close_fd(in_fd);
    in_fd = in.read;
    child.stdin_fd = in.write;
  }
  if (options.pipe_output && open_pipe(output)) {
    out_fd = output.write;
    child.output_fd = output.read;
    fcntl(child.output_fd, F_SETFL, O_NONBLOCK);
  } else {
    const std::string path = options.output_file.empty() ? "/dev/null" : options.output_file;
    out_fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  }
  const bool open_failed = in_fd < 0 || out_fd < 0;
  child.pid = open_failed ? -1 : start(argv, in_fd, out_fd, out_fd, options);
  close_fd(in_fd);
  close_fd(out_fd);
  if (child.pid < 0) {
    close_fd(child.stdin_fd);
    close_fd(child.output_fd);
    return unavailable("cannot start {}: {}", argv.empty() ? "nothing" : argv[0],
                       std::strerror(errno));
  }
  return child;
}

int try_wait(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, WNOHANG) == pid ? exit_code_of(status) : -1;
}

int stop_group(pid_t pid, std::int64_t grace_ms) {
  int status = 0;
  const std::int64_t deadline = now_ms() + grace_ms;
  bool signalled = false;
  while (now_ms() < deadline) {
    if (waitpid(pid, &status, WNOHANG) == pid) {
      kill(-pid, SIGKILL);  // whatever it left behind
      return exit_code_of(status);
    }
    if (!signalled) {
      kill(-pid, SIGTERM);
      signalled = true;
    }
    usleep(20'000);
  }
  kill(-pid, SIGKILL);
  return waitpid(pid, &status, 0) == pid ? exit_code_of(status) : 0;
}

}  // namespace tandem::cluster
