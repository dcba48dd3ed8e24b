// A body of POST /v1/responses: either JSON as it comes (first byte '{'), or one item per byte from
// a table, which reaches every order of items quickly. Whatever is accepted must render to a
// prompt, every result must answer an earlier call, and the stored form of the items must read back
// as the same conversation.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/json/json.h"
#include "model/text/chat_encoder.h"
#include "serving/protocol/responses_request.h"

namespace {

using namespace tandem;
using namespace tandem::protocol;

constexpr std::array<std::string_view, 20> kItems = {
    R"({"role":"user","content":"u"})",
    R"({"role":"developer","content":"d"})",
    R"({"role":"assistant","content":"a"})",
    R"({"type":"message","role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_text","text":"y"}]})",
    R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"t"}]})",
    R"({"type":"message","role":"assistant","content":[]})",
    R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"r"}]})",
    R"({"type":"reasoning","summary":[],"encrypted_content":"tandem1.cg=="})",
    R"({"type":"reasoning","summary":[{"type":"summary_text","text":"s"}]})",
    R"({"type":"function_call","call_id":"c1","name":"f","arguments":"{}"})",
    R"({"type":"function_call","call_id":"c2","name":"f","arguments":{"a":1}})",
    R"({"type":"function_call","call_id":"c3","name":"g","namespace":"n","arguments":"{\"x"})",
    R"({"type":"function_call","call_id":"c1","name":"f","status":"incomplete"})",
    R"({"type":"custom_tool_call","call_id":"c4","name":"p","input":"i"})",
    R"({"type":"function_call_output","call_id":"c1","output":"o1"})",
    R"({"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"o2"},{"type":"input_image"}]})",
    R"({"type":"function_call_output","call_id":"c3","output":{"k":[]}})",
    R"({"type":"custom_tool_call_output","call_id":"c4","output":"o4"})",
    R"({"type":"compaction","encrypted_content":"tandem1.c3Vt"})",
    R"({"type":"web_search_call","id":"ws"})"};

class NoLookup final : public ResponseLookup {
 public:
  Parsed<json::Array> history(const std::string&) const override { return json::Array(); }

  std::optional<json::Value> item(const std::string& id) const override {
    return json::Object{{"id", id}, {"role", "user"}, {"content", "referenced"}};
  }
};

void require(bool right) {
  if (!right) {
    std::abort();
  }
}

std::string body_of(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == '{') {
    return std::string(reinterpret_cast<const char*>(data), size);
  }
  std::string out = R"({"model":"m","input":[)";
  for (std::size_t i = 0; i < size; ++i) {
    out += i == 0 ? "" : ",";
    out += kItems[data[i] % kItems.size()];
  }
  return out + "]}";
}

std::string prompt_of(const ResponsesRequest& request) {
  const Result<text::Prompt> prompt =
      text::render_chat(std::get<ChatPrompt>(request.task.prompt).messages, {});
  return prompt.ok() ? prompt->text() : prompt.status().to_string();
}

void check_order(const std::vector<text::Message>& messages) {
  std::set<std::string> calls;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const text::Message& message = messages[i];
    if (message.role == text::Role::kTool) {
      require(calls.count(message.tool_call_id) == 1);
    }
    if (message.role == text::Role::kAssistant) {
      require(i == 0 || messages[i - 1].role != text::Role::kAssistant);
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
  IdSource ids(1, 2);
  const Parsed<ResponsesRequest> request = parse_responses_request(*body, NoLookup(), ids);
  if (!request.ok()) {
    require(request.error().http_status == 400 && !request.error().message.empty());
    return 0;
  }
  check_order(std::get<ChatPrompt>(request->task.prompt).messages);
  json::Value stored = *body;
  stored.as_object()["input"] = request->input;
  const Parsed<ResponsesRequest> again = parse_responses_request(stored, NoLookup(), ids);
  require(again.ok() && prompt_of(*again) == prompt_of(*request));
  return 0;
}
