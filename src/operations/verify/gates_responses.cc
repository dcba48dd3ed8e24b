#include <map>
#include <set>

#include "operations/verify/gates.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

json::Object base_body(const GateContext& context, std::string_view input) {
  return {{"model", context.model()},
          {"input", input},
          {"max_output_tokens", 64},
          {"temperature", 0},
          {"reasoning", json::Object{{"effort", "none"}}},
          {"store", false}};
}

json::Object ping_tool() {
  return {{"type", "function"},
          {"name", "ping"},
          {"description", "ping"},
          {"parameters", json::Object{{"type", "object"},
                                      {"properties", json::Object{}},
                                      {"additionalProperties", false}}}};
}

Status check_text(GateContext& context) {
  TANDEM_ASSIGN(
      const ApiReply reply,
      context.client().post("/v1/responses", base_body(context, "Reply with exactly RESPONSES.")));
  context.check(reply.status == 200, "responses.text.status", "200", reply.brief());
  context.check(int_at(reply.json, "usage.input_tokens").value_or(0) > 0 &&
                    int_at(reply.json, "usage.output_tokens").value_or(0) > 0,
                "responses.text.usage", "positive integers input_tokens and output_tokens",
                reply.brief());
  context.check_equal("responses.text.status_field", "completed", text_at(reply.json, "status"));
  context.check_equal("responses.text.answer", "RESPONSES", strip(output_text(reply.json)));
  return ok_status();
}

const std::set<std::string>& plain_events() {
  static const std::set<std::string> events = {
      "response.created",           "response.in_progress",        "response.output_item.added",
      "response.output_item.done",  "response.content_part.added", "response.content_part.done",
      "response.output_text.delta", "response.output_text.done",   "response.completed"};
  return events;
}

// What a whole stream said, gathered event by event.
struct StreamFacts {
  std::string bad_frame;     // first frame with a wrong form
  std::string bad_sequence;  // first wrong sequence_number
  std::string bad_id;        // first id that differs from the one before it
  std::string bad_order;
  std::string deltas;
  std::map<std::int64_t, std::string> item_ids;  // output_index -> item id
  std::set<std::string> open_items;
  std::string response_id;
  int terminals = 0;
  std::string last_type;
  json::Value final_response;
};

void note(std::string& place, std::string text) {
  if (place.empty()) {
    place = std::move(text);
  }
}

void take_item(StreamFacts& facts, const std::string& type, const json::Value& data) {
  const std::int64_t index = int_at(data, "output_index").value_or(-1);
  std::string id = text_at(data, "item.id");
  if (id.empty()) {
    id = text_at(data, "item_id");
  }
  if (index < 0) {
    return;
  }
  if (id.empty()) {
    note(facts.bad_id, type + " has an empty item id");
    return;
  }
  const auto [place, fresh] = facts.item_ids.emplace(index, id);
  if (!fresh && place->second != id) {
    note(facts.bad_id,
         fmt::format("{}: id {} at output_index {}, before {}", type, id, index, place->second));
  }
  if (type == "response.output_item.added" && !facts.open_items.insert(id).second) {
    note(facts.bad_order, "item " + id + " added twice");
  }
  if (type != "response.output_item.added" && facts.open_items.count(id) == 0) {
    note(facts.bad_order, type + " before output_item.added or after output_item.done");
  }
  if (type == "response.output_item.done") {
    facts.open_items.erase(id);
  }
}

void take_event(StreamFacts& facts, const net::SseEvent& event, std::int64_t number) {
  const auto parsed = json::parse(event.data);
  if (!parsed.ok()) {
    note(facts.bad_frame, "data is no JSON: " + shorten(event.data, 120));
    return;
  }
  const std::string type = text_at(*parsed, "type");
  if (event.event != type) {
    note(facts.bad_frame, fmt::format("event: '{}' but type '{}'", event.event, type));
  }
  const auto sequence = int_at(*parsed, "sequence_number");
  if (!sequence.has_value() || *sequence != number) {
    note(facts.bad_sequence,
         fmt::format("event {} ({}) has sequence_number {}", number, type,
                     sequence.has_value() ? std::to_string(*sequence) : "none"));
  }
  if (facts.terminals > 0) {
    note(facts.bad_order, type + " after the terminal event");
  }
  const std::string response_id = text_at(*parsed, "response.id");
  if (!response_id.empty()) {
    if (!facts.response_id.empty() && facts.response_id != response_id) {
      note(facts.bad_id, "response id changed to " + response_id);
    }
    facts.response_id = response_id;
  }
  take_item(facts, type, *parsed);
  if (type == "response.output_text.delta") {
    facts.deltas += text_at(*parsed, "delta");
  }
  if (type == "response.completed" || type == "response.incomplete" || type == "response.failed") {
    ++facts.terminals;
    if (const json::Value* response = at(*parsed, "response")) {
      facts.final_response = *response;
    }
  }
  facts.last_type = type;
}

StreamFacts read_stream(const StreamReply& reply) {
  StreamFacts facts;
  std::int64_t number = 0;
  for (const net::SseEvent& event : reply.events) {
    take_event(facts, event, number++);
  }
  return facts;
}

// Lines other than "event: ", "data: " and blank ones; the plain-text stream may have none.
std::string odd_line(std::string_view raw) {
  while (!raw.empty()) {
    const std::size_t end = raw.find('\n');
    std::string_view line = raw.substr(0, end);
    raw = end == std::string_view::npos ? "" : raw.substr(end + 1);
    if (!line.empty() && line.back() == '\r') {
      line.remove_suffix(1);
    }
    const bool known =
        line.empty() || line.compare(0, 7, "event: ") == 0 || line.compare(0, 6, "data: ") == 0;
    if (!known) {
      return shorten(line, 120);
    }
  }
  return {};
}

void check_final_ids(GateContext& context, const StreamFacts& facts) {
  std::string difference;
  for (const auto& [index, id] : facts.item_ids) {
    const std::string final_id = text_at(facts.final_response, fmt::format("output.{}.id", index));
    if (final_id != id) {
      note(difference, fmt::format("output {}: streamed {}, final '{}'", index, id, final_id));
    }
  }
  context.check(difference.empty(), "responses.stream.final_ids", "ids as streamed", difference);
}

void check_stream_form(GateContext& context, const StreamReply& reply, const StreamFacts& facts) {
  context.check(reply.status == 200, "responses.stream.status", "200", reply.brief());
  context.check(reply.content_type.find("text/event-stream") == 0, "responses.stream.content_type",
                "text/event-stream", reply.content_type);
  const std::string odd = odd_line(reply.raw);
  context.check(odd.empty(), "responses.stream.lines", "only event: and data: lines", odd);
  context.check(reply.raw.find("[DONE]") == std::string::npos, "responses.stream.no_done_mark",
                "no [DONE] on the Responses stream", reply.brief());
  context.check(facts.bad_frame.empty(), "responses.stream.event_names", "event: equals type",
                facts.bad_frame);
  context.check(facts.bad_sequence.empty(), "responses.stream.sequence_numbers", "0, 1, 2, ...",
                facts.bad_sequence);
  context.check(facts.bad_id.empty(), "responses.stream.ids", "stable ids", facts.bad_id);
  context.check(facts.bad_order.empty() && facts.open_items.empty(), "responses.stream.order",
                "added, deltas, done, then the terminal event",
                facts.bad_order.empty() ? "an item was never closed" : facts.bad_order);
  context.check(facts.terminals == 1 && !reply.ended_inside_event && reply.transport.ok(),
                "responses.stream.one_end", "exactly one terminal event, then a clean close",
                fmt::format("{} terminal events; {}", facts.terminals, reply.brief()));
}

Status check_stream(GateContext& context) {
  json::Object body = base_body(context, "Reply with exactly RESPONSES.");
  body["stream"] = true;
  const StreamReply reply = context.client().stream("/v1/responses", body);
  const StreamFacts facts = read_stream(reply);
  check_stream_form(context, reply, facts);
  std::string unknown;
  for (const net::SseEvent& event : reply.events) {
    if (plain_events().count(event.event) == 0) {
      note(unknown, event.event);
    }
  }
  context.check(unknown.empty(), "responses.stream.event_kinds",
                "the nine kinds of a plain text answer", unknown);
  context.check_equal("responses.stream.last_event", "response.completed", facts.last_type);
  context.check_equal("responses.stream.answer", "RESPONSES", strip(facts.deltas));
  context.check_equal("responses.stream.final_text", facts.deltas,
                      output_text(facts.final_response));
  context.check(int_at(facts.final_response, "usage.output_tokens").value_or(0) > 0,
                "responses.stream.usage", "usage.output_tokens in the terminal event",
                json::dump(facts.final_response));
  check_final_ids(context, facts);
  return ok_status();
}

Status check_tool_and_continuation(GateContext& context) {
  json::Object body = base_body(context, "Call ping.");
  body["store"] = true;
  body["tools"] = json::Array{ping_tool()};
  body["tool_choice"] = json::Object{{"type", "function"}, {"name", "ping"}};
  TANDEM_ASSIGN(const ApiReply call, context.client().post("/v1/responses", body));
  context.check(call.status == 200, "responses.tool.status", "200", call.brief());
  std::vector<const json::Value*> calls;
  if (const json::Value* output = at(call.json, "output");
      output != nullptr && output->is_array()) {
    for (const json::Value& item : output->get_array()) {
      if (text_at(item, "type") == "function_call") {
        calls.push_back(&item);
      }
    }
  }
  if (!context.check(calls.size() == 1, "responses.tool.one_call", "exactly one function_call",
                     call.brief())) {
    return ok_status();
  }
  context.check_equal("responses.tool.name", "ping", text_at(*calls[0], "name"));
  context.check_equal("responses.tool.arguments", "{}", text_at(*calls[0], "arguments"));
  const std::string call_id = text_at(*calls[0], "call_id");
  const std::string id = text_at(call.json, "id");
  context.check(!call_id.empty() && !id.empty(), "responses.tool.ids", "call_id and response id",
                call.brief());

  json::Object next = base_body(context, "");
  next["previous_response_id"] = id;
  next["input"] = json::Array{
      json::Object{
          {"type", "function_call_output"}, {"call_id", call_id}, {"output", "{\"ok\":true}"}},
      json::Object{{"role", "user"}, {"content", "Reply with exactly TOOL_OK."}}};
  TANDEM_ASSIGN(const ApiReply answer, context.client().post("/v1/responses", next));
  context.check(answer.status == 200, "responses.continuation.status",
                "200 (404: the server keeps no responses)", answer.brief());
  context.check_equal("responses.continuation.answer", "TOOL_OK", strip(output_text(answer.json)));

  json::Object foreign = base_body(context, "hi");
  foreign["previous_response_id"] = "resp_0000000000000000000000000000";
  TANDEM_ASSIGN(const ApiReply refused, context.client().post("/v1/responses", foreign));
  context.check(refused.status >= 400 && refused.status < 500, "responses.continuation.unknown_id",
                "4xx for an unknown previous_response_id", refused.brief());
  return ok_status();
}

Status check_schema(GateContext& context) {
  const json::Object schema{
      {"type", "object"},
      {"properties", json::Object{{"value", json::Object{{"type", "integer"}}}}},
      {"required", json::Array{"value"}},
      {"additionalProperties", false}};
  json::Object body = base_body(context, "Return JSON integer value 7.");
  body["text"] = json::Object{
      {"format",
       json::Object{
           {"type", "json_schema"}, {"name", "value"}, {"strict", true}, {"schema", schema}}}};
  TANDEM_ASSIGN(const ApiReply reply, context.client().post("/v1/responses", body));
  context.check(reply.status == 200, "responses.schema.status", "200", reply.brief());
  const std::string text = output_text(reply.json);
  const auto parsed = json::parse(text);
  if (context.check(parsed.ok(), "responses.schema.parses", "JSON", text)) {
    const std::string breach = schema_breach(schema, *parsed);
    context.check(breach.empty(), "responses.schema.valid", "an instance of the schema",
                  breach + " in " + text);
    context.check(int_at(*parsed, "value") == std::optional<std::int64_t>(7),
                  "responses.schema.value", "{\"value\": 7}", text);
  }
  return ok_status();
}

Status check_reasoning(GateContext& context) {
  json::Object body = base_body(context, "Think briefly, then reply with exactly REASONED.");
  body["reasoning"] = json::Object{{"effort", "low"}};
  body["max_output_tokens"] = 512;
  TANDEM_ASSIGN(const ApiReply reply, context.client().post("/v1/responses", body));
  context.check(reply.status == 200, "responses.reasoning.status", "200", reply.brief());
  bool reasoned =
      int_at(reply.json, "usage.output_tokens_details.reasoning_tokens").value_or(0) > 0;
  if (const json::Value* output = at(reply.json, "output");
      output != nullptr && output->is_array()) {
    for (const json::Value& item : output->get_array()) {
      reasoned = reasoned || text_at(item, "type") == "reasoning";
    }
  }
  context.check(reasoned, "responses.reasoning.present", "a reasoning item or reasoning_tokens > 0",
                reply.brief());
  context.check_equal("responses.reasoning.answer", "REASONED", strip(output_text(reply.json)));
  return ok_status();
}

Status check_bad_field(GateContext& context) {
  json::Object body = base_body(context, "hi");
  body["include"] = json::Array{"not_supported"};
  TANDEM_ASSIGN(const ApiReply reply, context.client().post("/v1/responses", body));
  const json::Value* error = at(reply.json, "error");
  context.check(reply.status >= 400 && error != nullptr && error->is_object(),
                "responses.bad_field.refused", "status >= 400 with an error object", reply.brief());
  return ok_status();
}

Status check_store(GateContext& context) {
  json::Object body = base_body(context, "Reply with exactly READY.");
  body["store"] = true;
  TANDEM_ASSIGN(const ApiReply made, context.client().post("/v1/responses", body));
  const std::string id = text_at(made.json, "id");
  if (!context.check(!id.empty(), "responses.store.id", "a response id", made.brief())) {
    return ok_status();
  }
  TANDEM_ASSIGN(const ApiReply again, context.client().get("/v1/responses/" + id));
  context.check(again.status == 200 && output_text(again.json) == output_text(made.json),
                "responses.store.get", "the same output", again.brief());
  TANDEM_ASSIGN(const ApiReply gone, context.client().send("DELETE", "/v1/responses/" + id, ""));
  context.check(gone.status == 200, "responses.store.delete", "200", gone.brief());
  TANDEM_ASSIGN(const ApiReply after, context.client().get("/v1/responses/" + id));
  context.check(after.status == 404, "responses.store.deleted", "404", after.brief());
  TANDEM_ASSIGN(
      const ApiReply unstored,
      context.client().post("/v1/responses", base_body(context, "Reply with exactly READY.")));
  TANDEM_ASSIGN(const ApiReply missing,
                context.client().get("/v1/responses/" + text_at(unstored.json, "id")));
  context.check(missing.status == 404, "responses.store.false", "404 after store:false",
                missing.brief());
  return ok_status();
}

}  // namespace

void add_responses_gates(std::vector<Gate>& gates) {
  gates.push_back({"responses.text", "Responses: plain text and usage", true, check_text});
  gates.push_back({"responses.stream", "Responses: the event stream", true, check_stream});
  gates.push_back({"responses.tool", "Responses: stateful tool continuation", true,
                   check_tool_and_continuation});
  gates.push_back({"responses.schema", "Responses: strict JSON schema", true, check_schema});
  gates.push_back({"responses.reasoning", "Responses: reasoning", true, check_reasoning});
  gates.push_back(
      {"responses.bad_field", "Responses: unsupported include is refused", true, check_bad_field});
  gates.push_back({"responses.store", "Responses: get, delete, store:false", true, check_store});
}

}  // namespace tandem::verify
