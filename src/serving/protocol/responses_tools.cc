#include "serving/protocol/responses_tools.h"

#include <utility>

#include "serving/protocol/openai_fields.h"

namespace tandem::protocol {
namespace {

class ToolReader {
 public:
  void read(const Fields& tool) {
    const std::string type = tool.text("type").value_or("function");
    if (type == "function") {
      function(tool, {});
    } else if (type == "custom") {
      custom(tool, {});
    } else if (type == "namespace") {
      tools_of_namespace(tool);
    } else {
      out_.echo.push_back(tool.json());
    }
  }

  ResponsesTools take() { return std::move(out_); }

 private:
  void function(const Fields& fields, const std::string& name_space) {
    std::optional<Tool> tool = parse_function_tool(fields);
    if (!tool) {
      return;
    }
    if (name_space.empty()) {
      echo_function(*tool);
    }
    add(std::move(*tool), {false, {}, name_space}, fields);
  }

  void custom(const Fields& outer, const std::string& name_space) {
    const Fields fields = outer.object("custom").value_or(outer);
    std::string description = fields.text("description").value_or("");
    const std::optional<Fields> format = fields.object("format");
    if (format && format->text("type").value_or("text") == "grammar") {
      description += fmt::format("\n\nThe input must follow this {} grammar:\n{}",
                                 format->text("syntax").value_or("lark"),
                                 format->text("definition").value_or(""));
    }
    const json::Value parameters = json::Object{
        {"type", "object"},
        {"properties",
         json::Object{{kCustomToolInput,
                       json::Object{{"type", "string"}, {"description", "the whole input"}}}}},
        {"required", json::Array{json::Value(kCustomToolInput)}},
        {"additionalProperties", false}};
    Tool tool = make_tool(fields.required_text("name"), description, &parameters, false);
    if (name_space.empty()) {
      out_.echo.push_back(outer.json());
    }
    add(std::move(tool), {true, {}, name_space}, fields);
  }

  void tools_of_namespace(const Fields& fields) {
    const std::string name = fields.required_text("name");
    out_.echo.push_back(fields.json());
    fields.each_object("tools", [this, &name](const Fields& tool) {
      const std::string type = tool.text("type").value_or("function");
      if (type == "function") {
        function(tool, name);
      } else if (type == "custom") {
        custom(tool, name);
      }
    });
  }

  void add(Tool tool, ToolOrigin origin, const Fields& fields) {
    origin.name = tool.spec.name;
    if (!origin.name_space.empty()) {
      tool.spec.name = namespaced_name(origin.name_space, origin.name);
      tool.definition.get_object()["name"] = tool.spec.name;
    }
    if (!out_.origins.emplace(tool.spec.name, std::move(origin)).second) {
      fields.fail("name", fmt::format("is '{}', which another tool has already; names of tools "
                                      "must differ",
                                      tool.spec.name));
      return;
    }
    out_.tools.push_back(std::move(tool));
  }

  void echo_function(const Tool& tool) {
    const json::Value* description = json::find(tool.definition, "description");
    out_.echo.push_back(json::Object{{"type", "function"},
                                     {"name", tool.spec.name},
                                     {"description", description ? *description : json::Value()},
                                     {"parameters", tool.spec.parameters},
                                     {"strict", tool.spec.strict}});
  }

  ResponsesTools out_;
};

}  // namespace

std::string namespaced_name(std::string_view name_space, std::string_view name) {
  const bool has_separator =
      name_space.size() >= 2 && name_space.substr(name_space.size() - 2) == "__";
  return fmt::format("{}{}{}", name_space, has_separator ? "" : "__", name);
}

ResponsesTools parse_responses_tools(const Fields& body) {
  ToolReader reader;
  body.each_object("tools", [&reader](const Fields& tool) { reader.read(tool); });
  return reader.take();
}

}  // namespace tandem::protocol
