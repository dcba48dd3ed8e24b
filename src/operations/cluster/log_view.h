// The log as it may be shown: without keys, the last lines or as it grows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace tandem::cluster {

// The line with everything that looks like a credential replaced: bearer tokens, x-api-key, sk-...
// keys, key=value pairs whose name says key, token, secret or password.
std::string redacted(std::string_view line);

struct LogOptions {
  std::size_t lines = 200;  // of the end
  bool follow = false;      // until keep_going() is false
};

// ERRORS: kNotFound naming the file.
Status show_log(const std::string& path, const LogOptions& options,
                const std::function<void(const std::string&)>& show,
                const std::function<bool()>& keep_going);

}  // namespace tandem::cluster
