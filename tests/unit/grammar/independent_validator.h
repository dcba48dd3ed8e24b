// A JSON Schema validator that shares nothing with the grammar.
#pragma once

#include <string>

namespace tandem::testing {

// Whether `text` is JSON and satisfies the schema. Knows draft 7 and 64-bit integers.
bool independent_says_valid(const char* schema_text, const std::string& text);

}  // namespace tandem::testing
