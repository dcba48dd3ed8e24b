#include "tests/unit/grammar/independent_validator.h"

#include <valijson/adapters/boost_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "foundation/json/json.h"

namespace tandem::testing {

bool independent_says_valid(const char* schema_text, const std::string& text) {
  const auto schema_json = json::parse(schema_text);
  const auto value = json::parse(text);
  if (!value.ok()) {
    return false;
  }
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::BoostJsonAdapter(*schema_json), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::BoostJsonAdapter(*value), nullptr);
}

}  // namespace tandem::testing
