// Small looks into JSON replies that the gates share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "foundation/json/json.h"

namespace tandem::verify {

// The value at a path like "choices.0.message.content"; nullptr if a step is missing.
const json::Value* at(const json::Value& value, std::string_view path);
const json::Value* at(json::Value&& value, std::string_view path) = delete;  // would dangle

// The text at a path, or "" if there is none.
std::string text_at(const json::Value& value, std::string_view path);

// The integer at a path; nothing if there is none or it is no JSON integer.
std::optional<std::int64_t> int_at(const json::Value& value, std::string_view path);

// Text without blanks and line ends at both sides.
std::string strip(std::string_view text);

// All output_text parts of all output items of a Responses object, joined.
std::string output_text(const json::Value& response);

// Why an instance breaks a JSON Schema, or "" if it obeys. Checked by valijson, a library that the
// server does not use.
std::string schema_breach(const json::Value& schema, const json::Value& instance);

// Sum over all labels of a metric in Prometheus text; nothing if it does not occur.
std::optional<double> metric_sum(std::string_view text, std::string_view name);

}  // namespace tandem::verify
