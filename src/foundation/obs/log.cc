#include "foundation/obs/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tandem::obs {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> made = [] {
    auto fresh = std::make_shared<spdlog::logger>(
        "tandem", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    fresh->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    return fresh;
  }();
  return *made;
}

}  // namespace

void set_log_level(std::string_view word) {
  const LogLevel level = word == "error"     ? LogLevel::kError
                         : word == "warning" ? LogLevel::kWarning
                         : word == "debug"   ? LogLevel::kDebug
                                             : LogLevel::kInfo;
  logger().set_level(to_spdlog(level));
}

bool log_enabled(LogLevel level) {
  return logger().should_log(to_spdlog(level));
}

void log_line(LogLevel level, std::string_view text) {
  logger().log(to_spdlog(level), "{}", text);
}

}  // namespace tandem::obs
