#include "tests/support/obedient_model.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <optional>
#include <string_view>

namespace tandem::testing {
namespace {

constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kResult = "<tool_result>";
constexpr int kListLines = 1000;

// One parameter of a call; JSON unless it is text.
struct Argument {
  std::string_view name;
  std::string_view value;
  bool is_text;
};

struct KnownTool {
  std::string_view name;
  std::array<Argument, 2> arguments;  // empty names: none
};

// The shells of coding agents, and the classic of every example.
constexpr std::array<KnownTool, 7> kKnownTools = {{
    {"exec_command", {{{"cmd", "echo hi", true}, {}}}},
    {"shell", {{{"command", R"(["echo", "hi"])", false}, {}}}},
    {"Bash", {{{"command", "echo hi", true}, {"description", "say hi", true}}}},
    {"bash", {{{"command", "echo hi", true}, {"description", "say hi", true}}}},
    {"execute_command", {{{"command", "echo hi", true}, {"requires_approval", "false", false}}}},
    {"run_commands", {{{"commands", R"(["echo hi"])", false}, {}}}},
    {"get_weather", {{{"location", "Paris", true}, {}}}},
}};

std::string call_of(std::string_view name, const std::array<Argument, 2>& arguments) {
  std::string parameters;
  for (const Argument& argument : arguments) {
    if (!argument.name.empty()) {
      parameters +=
          fmt::format("<｜DSML｜parameter name=\"{}\" string=\"{}\">{}</｜DSML｜parameter>\n",
                      argument.name, argument.is_text, argument.value);
    }
  }
  return fmt::format(
      "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"{}\">\n{}</｜DSML｜invoke>\n"
      "</｜DSML｜tool_calls>",
      name, parameters);
}

bool has_tool(const std::string& prompt, std::string_view name) {
  return prompt.find(fmt::format("\"name\": \"{}\"", name)) != std::string::npos;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The word behind a phrase, at its last place.
std::optional<std::string> word_after(const std::string& text, std::string_view phrase) {
  const std::size_t at = text.rfind(phrase);
  if (at == std::string::npos) {
    return std::nullopt;
  }
  std::size_t end = at + phrase.size();
  while (end < text.size() && is_word(text[end])) {
    ++end;
  }
  return text.substr(at + phrase.size(), end - at - phrase.size());
}

std::string list_lines() {
  std::string out;
  for (int i = 1; i <= kListLines; ++i) {
    out += fmt::format("{}. item\n", i);
  }
  return out;
}

std::string answer(const std::string& prompt, const std::string& turn) {
  if (const auto word = word_after(turn, "eply with exactly ")) {
    return *word;
  }
  const std::size_t result = turn.rfind(kResult);
  if (result != std::string::npos) {
    const std::size_t begin = result + kResult.size();
    return "The tool returned: " + turn.substr(begin, turn.find("</tool_result>", begin) - begin);
  }
  if (const auto number = word_after(turn, "JSON integer value ")) {
    return fmt::format("{{\"value\": {}}}", *number);
  }
  if (turn.find("numbered list") != std::string::npos) {
    return list_lines();
  }
  const auto name = word_after(turn, "Call ");
  if (name && has_tool(prompt, *name)) {
    return call_of(*name, {});
  }
  for (const KnownTool& tool : kKnownTools) {
    const bool is_wanted =
        turn.find(tool.name == "get_weather" ? "weather" : "echo hi") != std::string::npos;
    if (is_wanted && has_tool(prompt, tool.name)) {
      return call_of(tool.name, tool.arguments);
    }
  }
  return "Hello from the obedient model.";
}

}  // namespace

std::string obedient_reply(const std::string& prompt) {
  const std::size_t user = prompt.rfind(kUser);
  const std::size_t begin = user == std::string::npos ? 0 : user + kUser.size();
  const std::string turn = prompt.substr(begin, prompt.find(kAssistant, begin) - begin);
  const std::string_view think = "<think>";
  const bool thinks = prompt.size() >= think.size() &&
                      prompt.compare(prompt.size() - think.size(), think.size(), think) == 0;
  return (thinks ? "Let me see.</think>" : "") + answer(prompt, turn);
}

}  // namespace tandem::testing
