// Exit codes of the verbs; docs/OPERATIONS.md lists them and units rely on them.
#pragma once

namespace tandem::apps {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,         // it did not work; the message says why
  kExitUsage = 2,           // flags or config make no sense
  kExitAlreadyRunning = 3,  // a Tandem server answers on this port; units treat it as success
  kExitRefused = 4,         // something was found wrong before anything was started
  kExitEngineFault = 5,     // the engine was poisoned; a supervisor should start it again
  kExitInterrupted = 130,   // Ctrl-C before it was ready
};

}  // namespace tandem::apps
