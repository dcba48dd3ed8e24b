// Tools of the Responses API. Besides functions, agents send namespaces of functions, custom tools
// (free text as input) and tools that only the service itself could run. The model sees one flat
// list of functions; a ToolOrigin leads from its name for a tool back to the client's.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serving/protocol/generation_task.h"
#include "serving/protocol/request_fields.h"

namespace tandem::protocol {

// The one parameter of a custom tool as the model sees it.
inline constexpr std::string_view kCustomToolInput = "input";

struct ToolOrigin {
  bool is_custom = false;
  std::string name;
  std::string name_space;  // empty: none
};

struct ResponsesTools {
  std::vector<Tool> tools;                    // those that can be called
  std::map<std::string, ToolOrigin> origins;  // by the model's name
  json::Array echo;                           // "tools" of the response object
};

// The model's name for a function in a namespace.
std::string namespaced_name(std::string_view name_space, std::string_view name);

// Reads "tools". Kinds that this server cannot run (web_search and the like) are left out of
// `tools` but stay in `echo`.
ResponsesTools parse_responses_tools(const Fields& body);

}  // namespace tandem::protocol
