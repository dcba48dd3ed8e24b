// StopSignal: Ctrl-C, SIGTERM and SIGUSR1 (what the launcher sends to its ranks) as one request to
// stop. Before set_ready() a signal ends the process at once, so that a long load can be broken
// off; afterwards the first asks for an orderly stop and the second ends the process.
#pragma once

namespace tandem::apps {

class StopSignal {
 public:
  // Installs the handlers. Once per process, before threads are started.
  static void install();

  static void set_ready();

  // The same as a signal, from any thread.
  static void request();

  // Sleeps until a stop is requested or the time is over; whether it is requested.
  static bool wait(int timeout_ms);
};

}  // namespace tandem::apps
