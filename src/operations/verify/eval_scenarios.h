// The bundled set of tool-call scenarios: what the user says, and the calls that are right.
#pragma once

#include "foundation/json/json.h"

namespace tandem::verify {

// {"tools": [...], "scenarios": [{"name", "messages", "calls": [{"name", "arguments"}]}]}. An empty
// list of calls: the right answer is text.
const json::Value& tool_scenarios();

}  // namespace tandem::verify
