#include "apps/tandem/stop_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "apps/tandem/exit_codes.h"
#include "foundation/base/check.h"

namespace tandem::apps {
namespace {

// What a signal handler touches: nothing but lock-free atomics and one descriptor.
std::atomic<bool> ready{false};
std::atomic<bool> requested{false};
int event = -1;

void say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(event, &one, sizeof one);
}

void on_signal(int) {
  if (!ready) {
    say("tandem: interrupted before it was ready\n");
    _exit(kExitInterrupted);
  }
  if (requested.exchange(true)) {
    say("tandem: second signal, leaving at once\n");
    _exit(kExitInterrupted);
  }
  wake();
}

}  // namespace

void StopSignal::install() {
  event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  TANDEM_CHECK(event >= 0, "eventfd: no descriptor left");
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    sigaction(signal, &action, nullptr);
  }
}

void StopSignal::set_ready() {
  ready = true;
}

void StopSignal::request() {
  if (!requested.exchange(true)) {
    wake();
  }
}

bool StopSignal::wait(int timeout_ms) {
  pollfd entry{event, POLLIN, 0};
  poll(&entry, 1, timeout_ms);
  return requested;
}

}  // namespace tandem::apps
