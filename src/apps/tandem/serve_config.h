// ServeConfig: everything that decides how `tandem serve` runs. Defaults, then the TOML file, then
// flags; `tandem config` prints the result with the source of each value. No environment variables.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "foundation/base/status.h"

namespace tandem::apps {

struct ServeConfig {
  std::string model;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::int64_t tp = 1;
  std::string hosts;  // empty: all ranks here
  std::string ssh_command = "ssh";
  std::int64_t threads = 0;
  std::string device = "cpu";
  std::string numerics = "native";
  std::int64_t max_sequences = 8;
  std::int64_t max_context_tokens = 32768;
  std::int64_t kv_tokens = 131072;
  std::string kv_format = "fp8";
  std::int64_t prefix_snapshots = 32;
  std::int64_t prefill_tokens = 512;
  std::int64_t max_waiting = 256;
  std::int64_t stall_s = 30;
  std::int64_t draft_tokens = -1;
  std::string model_name;
  std::string state_dir;
  std::string api_keys_file;
  std::string tls_certificate;
  std::string tls_key;
  bool allow_public_without_key = false;
  std::string log_level = "info";
};

// One named value of the config, with what it means.
struct ConfigField {
  std::string name;
  std::variant<std::string*, std::int64_t*, bool*> value;
  std::string help;
};

// A ServeConfig with the source of every value ("default", "file PATH", "flag").
class ConfigLoader {
 public:
  // Adds --config and one flag per field to a verb.
  void add_flags(CLI::App& verb);

  // After the command line was parsed: reads the file, lets flags win, checks every value.
  // ERRORS: kNotFound (file), kInvalidArgument with every bad key and value in one message.
  Status resolve();

  const ServeConfig& config() const { return config_; }

  // The effective config as flags, for the ranks.
  std::vector<std::string> to_flags();

  // The effective config as TOML; each line ends with a comment that names its source.
  std::string to_toml();

 private:
  std::vector<ConfigField> fields();
  Status read_file();
  Status check() const;

  ServeConfig config_;
  std::string file_;
  std::map<std::string, std::string> flags_;
  std::map<std::string, std::string> sources_;
};

}  // namespace tandem::apps
