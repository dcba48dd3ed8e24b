// A page of a list of items: GET /v1/responses/{id}/input_items.
#pragma once

#include <optional>
#include <string>

#include "foundation/json/json.h"
#include "serving/protocol/api_error.h"

namespace tandem::protocol {

// The query of the request, as text; empty: not given.
struct ItemListQuery {
  std::string limit;  // 1 to 100, 20 if empty
  std::string order;  // "desc" (newest first, also if empty) or "asc"
  std::string after;  // id of the last item of the page before
};

// {"object": "list", "data", "first_id", "last_id", "has_more"}. ERRORS: 400 naming the parameter.
Parsed<json::Object> list_items(const json::Array& items, const ItemListQuery& query);

}  // namespace tandem::protocol
