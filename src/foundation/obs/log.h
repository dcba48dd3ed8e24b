// The log: one line per event on stderr, through spdlog. Secrets never get here: callers pass key
// names, not keys.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tandem::obs {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "error", "warning", "info" or "debug"; other words mean info.
void set_log_level(std::string_view word);

bool log_enabled(LogLevel level);

void log_line(LogLevel level, std::string_view text);

#define TANDEM_LOG_FUNCTION(name, level)                                 \
  template <typename... Args>                                            \
  void name(fmt::format_string<Args...> format, Args&&... args) {        \
    if (log_enabled(level)) {                                            \
      log_line(level, fmt::format(format, std::forward<Args>(args)...)); \
    }                                                                    \
  }
TANDEM_LOG_FUNCTION(log_debug, LogLevel::kDebug)
TANDEM_LOG_FUNCTION(log_info, LogLevel::kInfo)
TANDEM_LOG_FUNCTION(log_warning, LogLevel::kWarning)
TANDEM_LOG_FUNCTION(log_error, LogLevel::kError)
#undef TANDEM_LOG_FUNCTION

}  // namespace tandem::obs
