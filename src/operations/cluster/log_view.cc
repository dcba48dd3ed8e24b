#include "operations/cluster/log_view.h"

#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

namespace tandem::cluster {

std::string redacted(std::string_view line) {
  static const std::regex bearer(R"((bearer\s+)[^\s"']+)", std::regex::icase);
  static const std::regex header(R"((x-api-key\s*[:=]\s*)[^\s"']+)", std::regex::icase);
  static const std::regex named(
      R"(((?:api[-_]?key|token|secret|password)["']?\s*[:=]\s*["']?)[^\s"',&]{6,})",
      std::regex::icase);
  static const std::regex prefixed(R"(\b(sk-|hf_)[A-Za-z0-9_\-]{6,})");
  std::string out(line);
  out = std::regex_replace(out, bearer, "$1[redacted]");
  out = std::regex_replace(out, header, "$1[redacted]");
  out = std::regex_replace(out, named, "$1[redacted]");
  return std::regex_replace(out, prefixed, "$1[redacted]");
}

Status show_log(const std::string& path, const LogOptions& options,
                const std::function<void(const std::string&)>& show,
                const std::function<bool()>& keep_going) {
  std::ifstream file(path);
  if (!file) {
    return not_found("{} cannot be read: nothing was started yet (tandem up)", path);
  }
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(std::move(line));
    if (last.size() > options.lines) {
      last.pop_front();
    }
  }
  for (const std::string& line : last) {
    show(redacted(line));
  }
  constexpr auto kPoll = std::chrono::milliseconds(200);
  std::string partial;
  while (options.follow && keep_going()) {
    file.clear();
    for (std::string line; std::getline(file, line);) {
      if (file.eof()) {  // the rest of this line is still to come
        partial += line;
        break;
      }
      show(redacted(partial + line));
      partial.clear();
    }
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    file.clear();
    if (!error && file.tellg() > static_cast<std::streamoff>(size)) {  // a new run's log
      file.close();
      file.open(path);
    }
    std::this_thread::sleep_for(kPoll);
  }
  return ok_status();
}

}  // namespace tandem::cluster
