// HostSystem: what the cluster tool may ask of a machine. Three questions only (read a file, list a
// folder, run a command), so that every check is a function that a test can feed with recorded
// answers, and the same check works here, over ssh and on a recording.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::cluster {

struct CommandResult {
  int exit_code = 0;  // 127: no such command; 128 + n: ended by signal n
  bool timed_out = false;
  std::string out;
  std::string err;

  bool ok() const { return exit_code == 0 && !timed_out; }
};

class HostSystem {
 public:
  virtual ~HostSystem() = default;
  // The whole file. ERRORS: kNotFound, kPermissionDenied, kUnavailable (the host does not answer).
  virtual Result<std::string> read_file(const std::string& path) = 0;
  // Names in a folder, sorted. ERRORS: as read_file.
  virtual Result<std::vector<std::string>> list_dir(const std::string& path) = 0;
  // Runs a program without a shell. A command that cannot start has exit code 127.
  virtual CommandResult run(const std::vector<std::string>& argv, std::int64_t timeout_ms) = 0;
};

// This machine. `root` is put before every path ("" = the real file system).
std::unique_ptr<HostSystem> make_local_system(std::string root = "");

// Another machine over ssh in batch mode: never a password prompt, every call has a deadline.
// `options` are further ssh arguments ("-F", "/path"); calls share one connection, whose socket
// lies in `socket_dir` ("" = a connection per call).
struct SshTarget {
  std::string host;  // "user@host"
  std::vector<std::string> options;
  std::string socket_dir;
};

std::unique_ptr<HostSystem> make_ssh_system(SshTarget target);

// The ssh command line that runs `argv` on the target, quoted for the remote shell.
std::vector<std::string> ssh_command(const SshTarget& target, const std::vector<std::string>& argv);

// One word for a POSIX shell: 'it'\''s'.
std::string shell_quote(std::string_view word);

// A recording of one machine (a .tree file), for tests and for bug reports. Sections:
//   @ /path          the text of a file up to the next section, without its last line feed
//   $ 0 cmd arg      exit code and command line; the text is what it prints
// A folder lists the files that are below it. A command that was not recorded has exit code 127.
class RecordedSystem final : public HostSystem {
 public:
  // ERRORS: kInvalidArgument with the line that is no section.
  static Result<RecordedSystem> parse(std::string_view text);

  Result<std::string> read_file(const std::string& path) override;
  Result<std::vector<std::string>> list_dir(const std::string& path) override;
  CommandResult run(const std::vector<std::string>& argv, std::int64_t timeout_ms) override;

  void set_file(const std::string& path, std::string text) { files_[path] = std::move(text); }

  void remove(const std::string& prefix);

  void set_command(const std::string& line, CommandResult result) {
    commands_[line] = std::move(result);
  }

  std::string to_text() const;

  // Every command line that was run, in order.
  const std::vector<std::string>& ran() const { return ran_; }

 private:
  std::map<std::string, std::string> files_;
  std::map<std::string, CommandResult> commands_;
  std::vector<std::string> ran_;
};

// Passes everything on to `inner` and keeps the answers in `recording`.
std::unique_ptr<HostSystem> make_recorder(HostSystem& inner, RecordedSystem& recording);

// Small helpers that every check uses.
std::string trimmed(std::string_view text);
std::vector<std::string> words_of(std::string_view text);
std::vector<std::string> lines_of(std::string_view text);
std::string joined(const std::vector<std::string>& parts, std::string_view separator);

// The file without blanks at its ends, or "" if it cannot be read.
std::string read_word(HostSystem& system, const std::string& path);

}  // namespace tandem::cluster
