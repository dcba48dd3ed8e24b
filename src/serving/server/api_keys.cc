#include "serving/server/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "foundation/obs/log.h"

namespace tandem::server {
namespace {

constexpr std::size_t kMinKeyBytes = 8;

// "rpm=60" into the limit that it names.
bool take_limit(const std::string& word, KeyOwner& owner) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    return false;
  }
  const std::string name = word.substr(0, equals);
  std::int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data() + equals + 1, end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < 1) {
    return false;
  }
  if (name == "rpm") {
    owner.requests_per_minute = value;
  } else if (name == "tpm") {
    owner.tokens_per_minute = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<ApiKeys>> ApiKeys::load(const std::string& path) {
  std::unique_ptr<ApiKeys> keys(new ApiKeys(path));
  if (!path.empty()) {
    std::error_code ignored;
    keys->read_time_ = std::filesystem::last_write_time(path, ignored);
    TANDEM_ASSIGN(keys->entries_, keys->read());
  }
  return keys;
}

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

Result<std::vector<ApiKeys::Entry>> ApiKeys::read() const {
  std::ifstream file(path_);
  if (!file) {
    return not_found("api_keys_file {} cannot be read", path_);
  }
  std::vector<Entry> entries;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Entry entry;
    std::string key;
    if (!(words >> entry.owner.name)) {
      continue;
    }
    if (!(words >> key) || key.size() < kMinKeyBytes) {
      return invalid_argument(
          "api_keys_file {}, line {}: expected NAME KEY [rpm=N] [tpm=N] with a key of at least {} "
          "characters",
          path_, number, kMinKeyBytes);
    }
    for (std::string word; words >> word;) {
      if (!take_limit(word, entry.owner)) {
        return invalid_argument("api_keys_file {}, line {}: '{}'; expected rpm=N or tpm=N", path_,
                                number, word);
      }
    }
    entry.digest = digest_of(key);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return invalid_argument("api_keys_file {} holds no key; a line is: NAME KEY", path_);
  }
  return entries;
}

std::optional<KeyOwner> ApiKeys::find(std::string_view key) const {
  const Digest digest = digest_of(key);
  const std::lock_guard lock(mutex_);
  std::optional<KeyOwner> found;
  for (const Entry& entry : entries_) {  // all of them: time must not tell which one matched
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) {
      found = entry.owner;
    }
  }
  return found;
}

void ApiKeys::refresh() {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path_, error);
  if (!required() || error || time == read_time_) {
    return;
  }
  read_time_ = time;
  auto entries = read();
  if (!entries.ok()) {
    obs::log_error("{}; the keys from before stay", entries.status().message());
    return;
  }
  obs::log_info("api_keys_file {} was read again: {} keys", path_, entries->size());
  const std::lock_guard lock(mutex_);
  entries_ = std::move(*entries);
}

}  // namespace tandem::server
