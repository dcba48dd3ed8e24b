#include "operations/cluster/host_system.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "operations/cluster/process.h"

namespace tandem::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFileTimeoutMs = 8'000;

class LocalSystem final : public HostSystem {
 public:
  explicit LocalSystem(std::string root) : root_(std::move(root)) {}

  Result<std::string> read_file(const std::string& path) override {
    std::ifstream file(root_ + path, std::ios::binary);
    if (!file) {
      return errno == EACCES ? permission_denied("{}: permission denied", path)
                             : not_found("{}: {}", path, std::strerror(errno));
    }
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (file.bad()) {  // sysfs answers some reads with EINVAL
      return unavailable("{}: cannot be read", path);
    }
    return text;
  }

  Result<std::vector<std::string>> list_dir(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ + path, error)) {
      names.push_back(entry.path().filename().string());
    }
    if (error) {
      return not_found("{}: {}", path, error.message());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  CommandResult run(const std::vector<std::string>& argv, std::int64_t timeout_ms) override {
    return run_process(argv, timeout_ms);
  }

 private:
  std::string root_;
};

class SshSystem final : public HostSystem {
 public:
  explicit SshSystem(SshTarget target) : target_(std::move(target)) {}

  Result<std::string> read_file(const std::string& path) override {
    CommandResult result = run({"cat", "--", path}, kFileTimeoutMs);
    TANDEM_TRY(check(result, path));
    return std::move(result.out);
  }

  Result<std::vector<std::string>> list_dir(const std::string& path) override {
    const CommandResult result = run({"ls", "-1A", "--", path}, kFileTimeoutMs);
    TANDEM_TRY(check(result, path));
    return lines_of(result.out);
  }

  CommandResult run(const std::vector<std::string>& argv, std::int64_t timeout_ms) override {
    return run_process(ssh_command(target_, argv), timeout_ms);
  }

 private:
  Status check(const CommandResult& result, const std::string& path) const {
    if (result.timed_out || result.exit_code == 255) {
      return unavailable("{} does not answer over ssh: {}", target_.host,
                         result.timed_out ? "no answer in time" : trimmed(result.err));
    }
    return result.ok() ? ok_status() : not_found("{}: {}", path, trimmed(result.err));
  }

  SshTarget target_;
};

class Recorder final : public HostSystem {
 public:
  Recorder(HostSystem& inner, RecordedSystem& recording) : inner_(inner), recording_(recording) {}

  Result<std::string> read_file(const std::string& path) override {
    auto text = inner_.read_file(path);
    if (text.ok()) {
      recording_.set_file(path, *text);
    }
    return text;
  }

  Result<std::vector<std::string>> list_dir(const std::string& path) override {
    return inner_.list_dir(path);
  }

  CommandResult run(const std::vector<std::string>& argv, std::int64_t timeout_ms) override {
    CommandResult result = inner_.run(argv, timeout_ms);
    recording_.set_command(joined(argv, " "), result);
    return result;
  }

 private:
  HostSystem& inner_;
  RecordedSystem& recording_;
};

std::string without_last_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

}  // namespace

std::unique_ptr<HostSystem> make_local_system(std::string root) {
  return std::make_unique<LocalSystem>(std::move(root));
}

std::unique_ptr<HostSystem> make_ssh_system(SshTarget target) {
  return std::make_unique<SshSystem>(std::move(target));
}

std::unique_ptr<HostSystem> make_recorder(HostSystem& inner, RecordedSystem& recording) {
  return std::make_unique<Recorder>(inner, recording);
}

std::string shell_quote(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::vector<std::string> ssh_command(const SshTarget& target,
                                     const std::vector<std::string>& argv) {
  std::vector<std::string> line{"ssh",
                                "-o",
                                "BatchMode=yes",
                                "-o",
                                "ConnectTimeout=5",
                                "-o",
                                "ServerAliveInterval=2",
                                "-o",
                                "ServerAliveCountMax=2"};
  line.insert(line.end(), target.options.begin(), target.options.end());
  if (!target.socket_dir.empty()) {
    line.insert(line.end(), {"-o", "ControlMaster=auto", "-o", "ControlPersist=20", "-o",
                             "ControlPath=" + target.socket_dir + "/ssh-%C"});
  }
  line.push_back(target.host);
  line.emplace_back("--");
  for (const std::string& word : argv) {
    line.push_back(shell_quote(word));
  }
  return line;
}

Result<RecordedSystem> RecordedSystem::parse(std::string_view text) {
  RecordedSystem system;
  std::string path;
  std::string command;
  std::string body;
  CommandResult result;
  const auto finish = [&] {
    body = without_last_newline(std::move(body));
    if (!path.empty()) {
      system.files_[path] = body;
    } else if (!command.empty()) {
      result.out = body;
      system.commands_[command] = result;
    }
    path.clear();
    command.clear();
    body.clear();
  };
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("@ /", 0) == 0) {
      finish();
      path = line.substr(2);
    } else if (line.rfind("$ ", 0) == 0) {
      finish();
      const std::size_t space = line.find(' ', 2);
      if (space == std::string::npos) {
        return invalid_argument("'{}': expected '$ EXIT_CODE COMMAND'", line);
      }
      result = CommandResult{};
      result.exit_code = std::atoi(line.c_str() + 2);
      command = line.substr(space + 1);
    } else if (path.empty() && command.empty()) {
      if (!line.empty() && line[0] != '#') {
        return invalid_argument("'{}': expected '@ /path' or '$ EXIT_CODE COMMAND'", line);
      }
    } else {
      body += line + "\n";
    }
  }
  finish();
  return system;
}

Result<std::string> RecordedSystem::read_file(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) {
    return not_found("{}: not in the recording", path);
  }
  return found->second;
}

Result<std::vector<std::string>> RecordedSystem::list_dir(const std::string& path) {
  std::set<std::string> names;
  const std::string prefix = path + "/";
  for (const auto& file : files_) {
    if (file.first.rfind(prefix, 0) == 0) {
      const std::string rest = file.first.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
  }
  if (names.empty()) {
    return not_found("{}: not in the recording", path);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

CommandResult RecordedSystem::run(const std::vector<std::string>& argv, std::int64_t) {
  const std::string line = joined(argv, " ");
  ran_.push_back(line);
  const auto found = commands_.find(line);
  if (found != commands_.end()) {
    return found->second;
  }
  CommandResult missing;
  missing.exit_code = 127;
  return missing;
}

void RecordedSystem::remove(const std::string& prefix) {
  for (auto file = files_.begin(); file != files_.end();) {
    file = file->first.rfind(prefix, 0) == 0 ? files_.erase(file) : std::next(file);
  }
}

std::string RecordedSystem::to_text() const {
  std::string out;
  for (const auto& file : files_) {
    out += "@ " + file.first + "\n" + without_last_newline(file.second) + "\n";
  }
  for (const auto& command : commands_) {
    out += fmt::format("$ {} {}\n{}\n", command.second.exit_code, command.first,
                       without_last_newline(command.second.out));
  }
  return out;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return "";
  }
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += (i == 0 ? "" : std::string(separator)) + parts[i];
  }
  return out;
}

std::string read_word(HostSystem& system, const std::string& path) {
  const auto text = system.read_file(path);
  return text.ok() ? trimmed(*text) : "";
}

}  // namespace tandem::cluster
