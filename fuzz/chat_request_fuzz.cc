// A body of POST /v1/chat/completions or /v1/completions: either JSON as it comes (first byte '{'),
// or one message per byte from a table. Whatever is accepted must render to a prompt or name the
// message that cannot be; limits that the parser promises must hold.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "foundation/json/json.h"
#include "model/text/chat_encoder.h"
#include "serving/protocol/chat_request.h"
#include "serving/protocol/completion_request.h"

namespace {

using namespace tandem;
using namespace tandem::protocol;

constexpr std::array<std::string_view, 12> kMessages = {
    R"({"role":"user","content":"u"})",
    R"({"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]})",
    R"({"role":"system","content":"s"})",
    R"({"role":"developer","content":[{"type":"text","text":"d"}]})",
    R"({"role":"assistant","content":"a","reasoning_content":"r"})",
    R"({"role":"assistant","content":""})",
    R"({"role":"assistant","content":"p","prefix":true})",
    R"({"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]})",
    R"({"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"f","arguments":{"a":1}}},{"id":"c3","type":"function","function":{"name":"g","arguments":"{\"x"}}]})",
    R"({"role":"tool","tool_call_id":"c1","content":"o"})",
    R"({"role":"tool","tool_call_id":"c3","content":[{"type":"text","text":"l"}]})",
    R"({"role":"tool","tool_call_id":"c2","content":""})"};

void require(bool right) {
  if (!right) {
    std::abort();
  }
}

std::string body_of(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && data[0] == '{') {
    return std::string(reinterpret_cast<const char*>(data), size);
  }
  std::string out = R"({"model":"m","messages":[)";
  for (std::size_t i = 0; i < size; ++i) {
    out += i == 0 ? "" : ",";
    out += kMessages[data[i] % kMessages.size()];
  }
  return out + "]}";
}

void check_chat(const json::Value& body) {
  const Parsed<ChatRequest> request = parse_chat_request(body);
  if (!request.ok()) {
    require(request.error().http_status == 400 && !request.error().message.empty());
    return;
  }
  const GenerationTask& task = request->task;
  require(task.n >= 1 && task.stop.size() <= 16);
  require(task.sampling.temperature >= 0 && task.sampling.top_p > 0);
  const auto prompt = text::render_chat(std::get<ChatPrompt>(task.prompt).messages, {});
  require(prompt.ok() || !prompt.status().message().empty());
}

void check_completion(const json::Value& body) {
  const Parsed<CompletionRequest> request = parse_completion_request(body);
  if (!request.ok()) {
    require(request.error().http_status == 400 && !request.error().message.empty());
    return;
  }
  require(std::holds_alternative<RawPrompt>(request->task.prompt) && request->task.max_tokens >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) {
    return 0;
  }
  const Result<json::Value> body = json::parse(body_of(data, size));
  if (body.ok()) {
    check_chat(*body);
    check_completion(*body);
  }
  return 0;
}
