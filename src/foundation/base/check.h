// TANDEM_CHECK: for what cannot happen unless the program itself is wrong. Always on.
#pragma once

#include <string_view>

namespace tandem {

// Writes "file:line: check failed: text: message" to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* text,
                               std::string_view message);

}  // namespace tandem

#define TANDEM_CHECK(condition, message)                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      ::tandem::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                    \
  } while (false)
