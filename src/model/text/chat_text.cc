#include "model/text/chat_text.h"

#include "foundation/base/check.h"

namespace tandem::text {
namespace {

constexpr std::string_view kAbsoluteMaximum =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n";

constexpr std::string_view kBeyondMaximum =
    "Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.\n"
    "You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: "
    "exhaustively decompose the problem into its most fundamental components, trace every causal "
    "chain to its root, and resolve the underlying cause rather than any surface symptom.\n"
    "Do not stop reasoning until you have independently verified the solution from multiple angles "
    "and are certain that no assumption remains unchecked and no error remains undiscovered.\n\n";

}  // namespace

const std::string_view kToolsBegin =
    R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";

const std::string_view kToolsEnd =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
    "calls.\n";

const std::string_view kResponseFormatBegin =
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n";

std::string_view effort_prefix(ChatFormat format, Effort effort) {
  if (format == ChatFormat::kPreview) {
    return effort == Effort::kMax ? kAbsoluteMaximum : std::string_view();
  }
  switch (effort) {
    case Effort::kLow:
      return {};
    case Effort::kHigh:
      return kAbsoluteMaximum;
    case Effort::kMax:
      return kBeyondMaximum;
  }
  return {};
}

std::string_view task_token(Task task) {
  switch (task) {
    case Task::kNone:
      break;
    case Task::kAction:
      return "<｜action｜>";
    case Task::kQuery:
      return "<｜query｜>";
    case Task::kAuthority:
      return "<｜authority｜>";
    case Task::kDomain:
      return "<｜domain｜>";
    case Task::kTitle:
      return "<｜title｜>";
    case Task::kReadUrl:
      return "<｜read_url｜>";
  }
  TANDEM_CHECK(false, "no task has no token");
  return {};
}

}  // namespace tandem::text
