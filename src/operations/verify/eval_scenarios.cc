#include "operations/verify/eval_scenarios.h"

namespace tandem::verify {
namespace {

constexpr std::string_view kScenarios = R"json({
"tools": [
 {"type": "function", "function": {"name": "get_weather", "description": "Get the current weather of a city.",
  "parameters": {"type": "object", "properties": {"city": {"type": "string"},
   "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}},
 {"type": "function", "function": {"name": "get_forecast", "description": "Get the weather forecast of a city for some days.",
  "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
   "required": ["city", "days"]}}},
 {"type": "function", "function": {"name": "send_message", "description": "Send a message to a person.",
  "parameters": {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
   "required": ["to", "text"]}}},
 {"type": "function", "function": {"name": "create_event", "description": "Create a calendar event.",
  "parameters": {"type": "object", "properties": {"title": {"type": "string"}, "date": {"type": "string", "description": "YYYY-MM-DD"},
   "guests": {"type": "array", "items": {"type": "string"}},
   "place": {"type": "object", "properties": {"name": {"type": "string"}, "floor": {"type": "integer"}}}},
   "required": ["title", "date"]}}},
 {"type": "function", "function": {"name": "add_numbers", "description": "Add two numbers.",
  "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}},
 {"type": "function", "function": {"name": "run_command", "description": "Run a shell command and return its output.",
  "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}},
 {"type": "function", "function": {"name": "list_files", "description": "List the files of the working folder.",
  "parameters": {"type": "object", "properties": {}}}}
],
"scenarios": [
 {"name": "single", "messages": [{"role": "user", "content": "What is the weather in Paris right now?"}],
  "calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]},
 {"name": "optional_argument", "messages": [{"role": "user", "content": "What is the weather in Oslo right now, in fahrenheit?"}],
  "calls": [{"name": "get_weather", "arguments": {"city": "Oslo", "unit": "fahrenheit"}}]},
 {"name": "choose_between_similar", "messages": [{"role": "user", "content": "Give me the forecast for Vienna for the next 3 days."}],
  "calls": [{"name": "get_forecast", "arguments": {"city": "Vienna", "days": 3}}]},
 {"name": "copied_text", "messages": [{"role": "user", "content": "Send Anna exactly this message: See you at 5, bring the \"blue\" folder."}],
  "calls": [{"name": "send_message", "arguments": {"to": "Anna", "text": "See you at 5, bring the \"blue\" folder."}}]},
 {"name": "copied_unicode", "messages": [{"role": "user", "content": "Send Bj\u00f6rn exactly this message: Gr\u00fc\u00dfe aus M\u00fcnchen"}],
  "calls": [{"name": "send_message", "arguments": {"to": "Bj\u00f6rn", "text": "Gr\u00fc\u00dfe aus M\u00fcnchen"}}]},
 {"name": "integers", "messages": [{"role": "user", "content": "Add 48213 and 917 with the tool."}],
  "calls": [{"name": "add_numbers", "arguments": {"a": 48213, "b": 917}}]},
 {"name": "decimals", "messages": [{"role": "user", "content": "Add 2.5 and -0.75 with the tool."}],
  "calls": [{"name": "add_numbers", "arguments": {"a": 2.5, "b": -0.75}}]},
 {"name": "list_argument", "messages": [{"role": "user", "content": "Create the event Review on 2026-03-14 with the guests Ben and Clara."}],
  "calls": [{"name": "create_event", "arguments": {"title": "Review", "date": "2026-03-14", "guests": ["Ben", "Clara"]}}]},
 {"name": "nested_argument", "messages": [{"role": "user", "content": "Create the event Lunch on 2026-05-02 at the place Cafe Blue, floor 2. No guests."}],
  "calls": [{"name": "create_event", "arguments": {"title": "Lunch", "date": "2026-05-02", "place": {"name": "Cafe Blue", "floor": 2}}}]},
 {"name": "no_arguments", "messages": [{"role": "user", "content": "Which files are in the working folder?"}],
  "calls": [{"name": "list_files", "arguments": {}}]},
 {"name": "shell_quoting", "messages": [{"role": "user", "content": "Run exactly this command: grep -n \"a b\" 'c d.txt' | head -3"}],
  "calls": [{"name": "run_command", "arguments": {"command": "grep -n \"a b\" 'c d.txt' | head -3"}}]},
 {"name": "two_in_parallel", "messages": [{"role": "user", "content": "What is the weather right now in Rome, and what is it in Lima? Ask for both at once."}],
  "calls": [{"name": "get_weather", "arguments": {"city": "Rome"}}, {"name": "get_weather", "arguments": {"city": "Lima"}}]},
 {"name": "two_tools_in_parallel", "messages": [{"role": "user", "content": "At once: list the files of the working folder, and get the weather in Cairo right now."}],
  "calls": [{"name": "list_files", "arguments": {}}, {"name": "get_weather", "arguments": {"city": "Cairo"}}]},
 {"name": "no_call_needed", "messages": [{"role": "user", "content": "Say hello in French. No tool is needed."}], "calls": []},
 {"name": "no_tool_fits", "messages": [{"role": "user", "content": "Who wrote Romeo and Juliet?"}], "calls": []},
 {"name": "answer_from_result", "messages": [{"role": "user", "content": "What is the weather in Dublin right now?"},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Dublin\"}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "{\"sky\": \"rain\", \"celsius\": 9}"}], "calls": []},
 {"name": "next_call_from_result", "messages": [{"role": "user", "content": "Get the weather in Madrid right now, then send Finn a message that is only the temperature as a number."},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Madrid\"}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "{\"sky\": \"clear\", \"celsius\": 31}"}],
  "calls": [{"name": "send_message", "arguments": {"to": "Finn", "text": "31"}}]},
 {"name": "topic_changes", "messages": [{"role": "user", "content": "Add 1 and 2 with the tool."},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add_numbers", "arguments": "{\"a\": 1, \"b\": 2}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "3"}, {"role": "assistant", "content": "The sum is 3."},
  {"role": "user", "content": "Thanks. Now the weather in Tokyo, please, as it is right now."}],
  "calls": [{"name": "get_weather", "arguments": {"city": "Tokyo"}}]},
 {"name": "system_rule", "messages": [{"role": "system", "content": "Temperatures are always wanted in celsius, and you state the unit in every call."},
  {"role": "user", "content": "What is the weather in Athens right now?"}],
  "calls": [{"name": "get_weather", "arguments": {"city": "Athens", "unit": "celsius"}}]},
 {"name": "correction", "messages": [{"role": "user", "content": "Forecast for Helsinki for 2 days. No, sorry: for 5 days."}],
  "calls": [{"name": "get_forecast", "arguments": {"city": "Helsinki", "days": 5}}]}
]})json";

}  // namespace

const json::Value& tool_scenarios() {
  static const json::Value parsed = *json::parse(kScenarios);
  return parsed;
}

}  // namespace tandem::verify
