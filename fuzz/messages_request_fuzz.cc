// A body of POST /v1/messages: either JSON as it comes (first byte '{'), or one message per byte
// from a table. Whatever is accepted must render to a prompt, every result must answer an earlier
// call, and counting tokens must accept what generating accepts, with the same conversation.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/json/json.h"
#include "model/text/chat_encoder.h"
#include "serving/protocol/messages_request.h"

namespace {

using namespace tandem;
using namespace tandem::protocol;

constexpr std::array<std::string_view, 14> kMessages = {
    R"({"role":"user","content":"u"})",
    R"({"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]})",
    R"({"role":"user","content":[]})",
    R"({"role":"system","content":"s"})",
    R"({"role":"assistant","content":"a"})",
    R"({"role":"assistant","content":""})",
    R"({"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"x"},{"type":"text","text":"b"}]})",
    R"({"role":"assistant","content":[{"type":"thinking","thinking":""},{"type":"tool_use","id":"t1","name":"f","input":{}}]})",
    R"({"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"f","input":{"a":[1]}},{"type":"tool_use","id":"t3","name":"g","input":"raw"}]})",
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r1"}]})",
    R"({"role":"user","content":[{"type":"text","text":"p"},{"type":"tool_result","tool_use_id":"t3","is_error":true},{"type":"text","text":"q"}]})",
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"r2"},{"type":"image"}]}]})",
    R"({"role":"user","content":[{"type":"document","source":{"type":"text","data":"d"}}]})",
    R"({"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"server_tool_use","id":"s"}]})"};

void require(bool right) {
  if (!right) {
    std::abort();
  }
}

std::string body_of(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == '{') {
    return std::string(reinterpret_cast<const char*>(data), size);
  }
  std::string out = R"({"model":"m","max_tokens":5,"messages":[)";
  for (std::size_t i = 0; i < size; ++i) {
    out += i == 0 ? "" : ",";
    out += kMessages[data[i] % kMessages.size()];
  }
  return out + "]}";
}

const std::vector<text::Message>& messages_of(const Parsed<GenerationTask>& task) {
  return std::get<ChatPrompt>(task->prompt).messages;
}

std::string prompt_of(const std::vector<text::Message>& messages) {
  const Result<text::Prompt> prompt = text::render_chat(messages, {});
  return prompt.ok() ? prompt->text() : prompt.status().to_string();
}

void check_results(const std::vector<text::Message>& messages) {
  std::set<std::string> calls;
  for (const text::Message& message : messages) {
    if (message.role == text::Role::kTool) {
      require(calls.count(message.tool_call_id) == 1);
    }
    for (const text::ToolCall& call : message.tool_calls) {
      calls.insert(call.id);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) {
    return 0;
  }
  const Result<json::Value> body = json::parse(body_of(data, size));
  if (!body.ok()) {
    return 0;
  }
  const Parsed<GenerationTask> task = parse_messages_request(*body, MessagesUse::kGenerate);
  if (!task.ok()) {
    require(task.error().http_status == 400 && !task.error().message.empty());
    return 0;
  }
  check_results(messages_of(task));
  const Parsed<GenerationTask> counted = parse_messages_request(*body, MessagesUse::kCountTokens);
  require(counted.ok() && prompt_of(messages_of(counted)) == prompt_of(messages_of(task)));
  return 0;
}
