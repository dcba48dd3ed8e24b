#include "tests/support/openapi_schemas.h"

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <valijson/adapters/boost_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace tandem::testing {
namespace {

using valijson::adapters::BoostJsonAdapter;

json::Value document() {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/data/openresponses/openapi-2026-04-24.json");
  std::stringstream text;
  text << file.rdbuf();
  return json::parse(text.str()).value();
}

const valijson::Schema& schema_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<valijson::Schema>> schemas;
  std::unique_ptr<valijson::Schema>& schema = schemas[name];
  if (!schema) {
    static const json::Value api = document();
    const json::Value root = json::Object{{"$ref", "#/components/schemas/" + name},
                                          {"components", *json::find(api, "components")}};
    schema = std::make_unique<valijson::Schema>();
    valijson::SchemaParser parser;
    parser.populateSchema(BoostJsonAdapter(root), *schema);
  }
  return *schema;
}

}  // namespace

std::string openresponses_problems(const std::string& schema, const json::Value& value) {
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema_of(schema), BoostJsonAdapter(value), &results)) {
    return {};
  }
  std::string out;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const std::string& part : error.context) {
      out += part;
    }
    out += ": " + error.description + "\n";
  }
  return out;
}

}  // namespace tandem::testing
