// Validates JSON against the OpenResponses document (tests/data/openresponses) with valijson, a
// library that shares nothing with the server.
#pragma once

#include <string>

#include "foundation/json/json.h"

namespace tandem::testing {

// The reasons why `value` is no `schema` of the document ("ResponseResource"); empty if it is one.
std::string openresponses_problems(const std::string& schema, const json::Value& value);

}  // namespace tandem::testing
