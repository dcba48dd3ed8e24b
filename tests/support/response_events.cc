#include "tests/support/response_events.h"

#include <set>
#include <utility>

#include "tests/support/openapi_schemas.h"

namespace tandem::testing {
namespace {

std::string text_of(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::int64_t number_of(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_int64()    ? found->get_int64()
         : found != nullptr && found->is_uint64() ? static_cast<std::int64_t>(found->get_uint64())
                                                  : -1;
}

// The schema of an event type; "" for types that the document does not know.
std::string schema_of(std::string_view type) {
  static const std::pair<const char*, const char*> kKnown[] = {
      {"response.created", "ResponseCreatedStreamingEvent"},
      {"response.in_progress", "ResponseInProgressStreamingEvent"},
      {"response.completed", "ResponseCompletedStreamingEvent"},
      {"response.incomplete", "ResponseIncompleteStreamingEvent"},
      {"response.failed", "ResponseFailedStreamingEvent"},
      {"response.output_item.added", "ResponseOutputItemAddedStreamingEvent"},
      {"response.output_item.done", "ResponseOutputItemDoneStreamingEvent"},
      {"response.content_part.added", "ResponseContentPartAddedStreamingEvent"},
      {"response.content_part.done", "ResponseContentPartDoneStreamingEvent"},
      {"response.output_text.delta", "ResponseOutputTextDeltaStreamingEvent"},
      {"response.output_text.done", "ResponseOutputTextDoneStreamingEvent"},
      {"response.function_call_arguments.delta",
       "ResponseFunctionCallArgumentsDeltaStreamingEvent"},
      {"response.function_call_arguments.done", "ResponseFunctionCallArgumentsDoneStreamingEvent"},
      {"error", "ErrorStreamingEvent"}};
  for (const auto& [name, schema] : kKnown) {
    if (type == name) {
      return schema;
    }
  }
  return {};
}

// Keeps the entries of a list whose type is (or is not) `type`.
void keep(json::Value* list, std::string_view type, bool is_type) {
  json::Array kept;
  for (const json::Value& entry : list->get_array()) {
    if ((text_of(entry, "type") == type) == is_type) {
      kept.push_back(entry);
    }
  }
  *list = std::move(kept);
}

// The event without what OpenAI has and the OpenResponses document does not: tools that are no
// functions, custom calls, and a schema that is not null.
json::Value known_part(json::Value event) {
  json::Value* response = event.as_object().if_contains("response");
  if (response == nullptr) {
    return event;
  }
  keep(&response->at("tools"), "function", true);
  keep(&response->at("output"), "custom_tool_call", false);
  json::Object& format = response->at("text").at("format").as_object();
  if (format.contains("schema")) {
    format["schema"] = nullptr;
  }
  return event;
}

class Checker {
 public:
  explicit Checker(ResponseEvents& out) : out_(out) {}

  void frame(std::string_view name, const json::Value& event) {
    const std::string type = text_of(event, "type");
    expect(name == type, "event line '" + std::string(name) + "' with type '" + type + "'");
    expect(number_of(event, "sequence_number") == n_events_++, type + ": sequence_number");
    expect(!ended_, type + " after the terminal event");
    validate(type, event);
    order(type, event);
  }

  void finish() {
    expect(ended_, "no terminal event");
    expect(item_id_.empty(), "an item is open at the end");
  }

 private:
  void expect(bool right, const std::string& what) {
    if (!right) {
      out_.problems.push_back(what);
    }
  }

  void validate(const std::string& type, const json::Value& event) {
    const json::Value* item = json::find(event, "item");
    const std::string schema = schema_of(type);
    if (!schema.empty() && (item == nullptr || text_of(*item, "type") != "custom_tool_call")) {
      const std::string problems = openresponses_problems(schema, known_part(event));
      expect(problems.empty(), type + " is no " + schema + ": " + problems);
    }
  }

  void order(const std::string& type, const json::Value& event) {
    if (type == "response.created" || type == "response.in_progress") {
      expect((type == "response.created") == (n_events_ == 1), type + " out of place");
      response_id_ = response_id_.empty() ? response_id(event) : response_id_;
      expect(response_id(event) == response_id_ && !response_id_.empty(), type + ": response id");
    } else if (type == "response.output_item.added") {
      item_added(*json::find(event, "item"), event);
    } else if (type == "response.output_item.done") {
      item_done(*json::find(event, "item"), event);
    } else if (type == "response.completed" || type == "response.incomplete" ||
               type == "response.failed") {
      terminal(type, event);
    } else if (type != "error") {
      inside(type, event);
    }
  }

  static std::string response_id(const json::Value& event) {
    return text_of(*json::find(event, "response"), "id");
  }

  void item_added(const json::Value& item, const json::Value& event) {
    expect(item_id_.empty(), "an item begins inside another one");
    item_id_ = text_of(item, "id");
    expect(!item_id_.empty() && ids_.insert(item_id_).second, "item id empty or used twice");
    expect(text_of(item, "status") == "in_progress", "a new item is in progress");
    expect(number_of(event, "output_index") == static_cast<std::int64_t>(items_.size()),
           "output_index of the new item");
    added_ = item;
    deltas_.clear();
    done_text_.reset();
  }

  void inside(const std::string& type, const json::Value& event) {
    expect(text_of(event, "item_id") == item_id_, type + ": item_id");
    expect(number_of(event, "output_index") == static_cast<std::int64_t>(items_.size()),
           type + ": output_index");
    if (type.find(".delta") != std::string::npos) {
      expect(!done_text_.has_value(), type + " after done");
      deltas_ += text_of(event, "delta");
    } else if (type.find("text.done") != std::string::npos) {
      done_text_ = text_of(event, "text");
    } else if (type == "response.function_call_arguments.done") {
      expect(text_of(event, "name") == text_of(added_, "name"), "name on arguments.done");
      done_text_ = text_of(event, "arguments");
    } else if (type == "response.custom_tool_call_input.done") {
      done_text_ = text_of(event, "input");
    }
  }

  void item_done(const json::Value& item, const json::Value& event) {
    expect(text_of(item, "id") == item_id_, "output_item.done: id");
    expect(text_of(item, "call_id") == text_of(added_, "call_id"), "call_id changed");
    expect(number_of(event, "output_index") == static_cast<std::int64_t>(items_.size()),
           "output_item.done: output_index");
    expect(text_of(item, "status") != "in_progress", "a done item is still in progress");
    expect(done_text_.has_value() && *done_text_ == deltas_, "deltas do not add up to done");
    expect(payload(item) == deltas_, "deltas do not add up to the item");
    items_.push_back(item);
    item_id_.clear();
  }

  static std::string payload(const json::Value& item) {
    const json::Value* content = json::find(item, "content");
    if (content != nullptr && content->is_array() && !content->get_array().empty()) {
      return text_of(content->get_array()[0], "text");
    }
    return text_of(item, "arguments") + text_of(item, "input");
  }

  void terminal(const std::string& type, const json::Value& event) {
    ended_ = true;
    const json::Value& response = *json::find(event, "response");
    out_.response = response.get_object();
    expect(text_of(response, "id") == response_id_, "the response id changed");
    if (type == "response.failed") {
      item_id_.clear();  // what was open when the engine failed is not finished
    }
    expect(*json::find(response, "output") == json::Value(items_),
           "the final output differs from the streamed items");
    if (type == "response.completed") {
      expect(text_of(response, "status") == "completed", "status of response.completed");
      expect(json::find(response, "usage")->is_object(), "usage of response.completed");
      for (const json::Value& item : items_) {
        expect(text_of(item, "status") == "completed",
               "an unfinished item in a completed response");
      }
    }
  }

  ResponseEvents& out_;
  std::int64_t n_events_ = 0;
  bool ended_ = false;
  std::string response_id_;
  std::set<std::string> ids_;
  json::Array items_;
  std::string item_id_;
  json::Value added_;
  std::string deltas_;
  std::optional<std::string> done_text_;
};

}  // namespace

std::vector<std::string> ResponseEvents::types() const {
  std::vector<std::string> out;
  for (const json::Value& event : events) {
    const std::string type = text_of(event, "type");
    if (out.empty() || out.back() != type) {
      out.push_back(type);
    }
  }
  return out;
}

ResponseEvents read_response_events(std::string_view frames) {
  ResponseEvents out;
  Checker checker(out);
  while (!frames.empty()) {
    const std::size_t end = frames.find("\n\n");
    const std::string_view frame = frames.substr(0, end);
    const std::size_t line = frame.find('\n');
    if (end == std::string_view::npos || frame.substr(0, 7) != "event: " ||
        line == std::string_view::npos || frame.substr(line + 1, 6) != "data: " ||
        frame.find('\n', line + 1) != std::string_view::npos) {
      out.problems.push_back("no event and data line: " + std::string(frame));
      break;
    }
    out.events.push_back(json::parse(frame.substr(line + 7)).value());
    checker.frame(frame.substr(7, line - 7), out.events.back());
    frames.remove_prefix(end + 2);
  }
  checker.finish();
  return out;
}

}  // namespace tandem::testing
