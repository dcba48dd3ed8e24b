// A model that does what it is told, for tests with real clients: it says what it shall say, calls
// the tool that it shall call and reports what the tool returned. It reads the prompt as the real
// model would get it, so a prompt that lost something gets a wrong answer.
#pragma once

#include <string>

namespace tandem::testing {

// The reply to a prompt, marks included:
//   "reply with exactly X."       X
//   "JSON integer value N"        {"value": N}
//   "numbered list"               a list of 1,000 lines
//   "Call NAME."                  a call of NAME without arguments
//   "echo hi" with a shell tool   a call of the tool that runs it
//   "weather" with get_weather    a call of get_weather
//   a tool result                 "The tool returned: " and its text
//   anything else                 a greeting
std::string obedient_reply(const std::string& prompt);

}  // namespace tandem::testing
