#include "serving/protocol/openai_fields.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tandem::protocol {
namespace {

constexpr std::size_t kMaxNameBytes = 256;

// The object that holds the name: the nested one if there is one.
Fields inner_or_self(const Fields& fields, std::string_view key) {
  return fields.object(key).value_or(fields);
}

std::optional<grammar::ToolChoiceMode> mode_of(std::string_view word) {
  if (word == "auto") {
    return grammar::ToolChoiceMode::kAuto;
  }
  if (word == "none") {
    return grammar::ToolChoiceMode::kNone;
  }
  if (word == "required" || word == "any") {
    return grammar::ToolChoiceMode::kRequired;
  }
  return std::nullopt;
}

ToolChoiceFields parse_allowed_tools(const Fields& choice) {
  ToolChoiceFields out;
  const Fields inner = inner_or_self(choice, "allowed_tools");
  const std::string mode = inner.word("mode", {"auto", "required"}).value_or("auto");
  out.choice.mode = *mode_of(mode);
  out.allowed.emplace();
  inner.each_object("tools", [&out](const Fields& tool) {
    const std::string key = tool.text("type").value_or("function");
    out.allowed->push_back(inner_or_self(tool, key).required_text("name"));
  });
  return out;
}

bool has_tool(const std::vector<Tool>& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(),
                     [name](const Tool& tool) { return tool.spec.name == name; });
}

}  // namespace

Tool make_tool(std::string name, std::optional<std::string> description,
               const json::Value* parameters, bool strict) {
  Tool tool;
  json::Object definition{{"name", name}};
  if (description) {
    definition["description"] = *description;
  }
  if (parameters != nullptr) {
    definition["parameters"] = *parameters;
    tool.spec.parameters = *parameters;
  }
  tool.spec.name = std::move(name);
  tool.spec.strict = strict;
  tool.definition = std::move(definition);
  return tool;
}

std::optional<Tool> parse_function_tool(const Fields& tool) {
  const Fields fields = inner_or_self(tool, "function");
  std::string name = fields.required_text("name");
  if (fields.errors().ok() && (name.empty() || name.size() > kMaxNameBytes)) {
    fields.fail("name", fmt::format("has {} bytes, expected 1 to {}", name.size(), kMaxNameBytes));
  }
  fields.object("parameters");  // an object or nothing
  Tool made = make_tool(std::move(name), fields.text("description"), fields.find("parameters"),
                        fields.boolean("strict").value_or(false));
  if (!fields.errors().ok()) {
    return std::nullopt;
  }
  return made;
}

ToolChoiceFields parse_tool_choice(const Fields& body, std::string_view key) {
  ToolChoiceFields out;
  const json::Value* value = body.find(key);
  if (value == nullptr) {
    return out;
  }
  if (value->is_string()) {
    const std::optional<grammar::ToolChoiceMode> mode = mode_of(value->get_string());
    if (mode) {
      out.choice.mode = *mode;
    } else {
      body.fail(key, fmt::format("is '{}', expected one of: none, auto, required, or an object",
                                 std::string_view(value->get_string())));
    }
    return out;
  }
  const std::optional<Fields> choice = body.object(key);
  if (!choice) {
    return out;
  }
  const std::string type = choice->text("type").value_or("function");
  if (type == "allowed_tools") {
    return parse_allowed_tools(*choice);
  }
  if (const auto mode = mode_of(type)) {
    out.choice.mode = *mode;
    return out;
  }
  if (type != "function" && type != "custom" && type != "tool") {
    choice->fail("type",
                 fmt::format("is '{}', expected one of: function, custom, allowed_tools", type));
    return out;
  }
  out.choice.mode = grammar::ToolChoiceMode::kNamed;
  out.choice.name = inner_or_self(*choice, type).required_text("name");
  return out;
}

void apply_tool_choice(const ToolChoiceFields& fields, std::string_view param, GenerationTask& task,
                       FieldErrors& errors) {
  const auto fail = [&errors, param](std::string message) {
    errors.add(bad_field(std::string(param), std::move(message)));
  };
  const auto require = [&](const std::string& name) {
    if (!has_tool(task.tools, name)) {
      fail(fmt::format("'{}' names the tool '{}', which is not in 'tools'", param, name));
    }
  };
  task.tool_choice = fields.choice;
  if (fields.choice.mode == grammar::ToolChoiceMode::kRequired && task.tools.empty()) {
    fail(fmt::format("'{}' asks for a tool call, but 'tools' has no tool that can be called",
                     param));
  }
  if (fields.choice.mode == grammar::ToolChoiceMode::kNamed) {
    require(fields.choice.name);
  }
  if (fields.allowed) {
    const std::set<std::string> allowed(fields.allowed->begin(), fields.allowed->end());
    for (const std::string& name : allowed) {
      require(name);
    }
    for (Tool& tool : task.tools) {
      tool.allowed = allowed.count(tool.spec.name) != 0;
    }
  }
}

std::optional<Thinking> thinking_of_effort(std::string_view word) {
  using text::Effort;
  using text::ThinkingMode;
  if (word == "none") {
    return Thinking{ThinkingMode::kChat, std::nullopt};
  }
  if (word == "minimal" || word == "low") {
    return Thinking{ThinkingMode::kThinking, Effort::kLow};
  }
  if (word == "medium" || word == "high" || word == "xhigh") {
    return Thinking{ThinkingMode::kThinking, Effort::kHigh};
  }
  if (word == "max" || word == "ultra") {
    return Thinking{ThinkingMode::kThinking, Effort::kMax};
  }
  return std::nullopt;
}

}  // namespace tandem::protocol
