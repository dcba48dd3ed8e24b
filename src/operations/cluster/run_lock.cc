#include "operations/cluster/run_lock.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <vector>

namespace tandem::cluster {
namespace {

std::string boot_id(HostSystem& system) {
  return read_word(system, "/proc/sys/kernel/random/boot_id");
}

}  // namespace

std::string lock_path(const std::string& state_dir) {
  return state_dir + "/lock";
}

std::optional<RunLock> read_lock(HostSystem& system, const std::string& state_dir) {
  const auto text = system.read_file(lock_path(state_dir));
  if (!text.ok()) {
    return std::nullopt;
  }
  RunLock lock;
  const std::vector<std::string> words = words_of(*text);
  if (words.size() >= 2) {
    std::from_chars(words[0].data(), words[0].data() + words[0].size(), lock.pid);
    const auto stat = system.read_file("/proc/" + words[0] + "/stat");
    // A zombie has ended; its parent has not looked yet.
    const bool runs = stat.ok() && stat->find(") Z ") == std::string::npos;
    lock.alive = lock.pid > 1 && words[1] == boot_id(system) && runs;
  }
  return lock;
}

Status write_lock(HostSystem& system, const std::string& state_dir, pid_t pid) {
  std::error_code error;
  std::filesystem::create_directories(state_dir, error);
  if (error) {
    return permission_denied("state_dir {} cannot be made: {}", state_dir, error.message());
  }
  const std::string path = lock_path(state_dir);
  {
    std::ofstream file(path + ".new", std::ios::trunc);
    file << pid << ' ' << boot_id(system) << '\n';
    file.close();
    if (!file) {
      return resource_exhausted("{} cannot be written: is the disk full?", path);
    }
  }
  std::filesystem::rename(path + ".new", path, error);
  return error ? permission_denied("{} cannot be written: {}", path, error.message()) : ok_status();
}

void remove_lock(const std::string& state_dir) {
  std::error_code ignored;
  std::filesystem::remove(lock_path(state_dir), ignored);
}

}  // namespace tandem::cluster
