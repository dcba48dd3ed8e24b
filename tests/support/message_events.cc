#include "tests/support/message_events.h"

#include <utility>

namespace tandem::testing {
namespace {

std::string text_of(const json::Value& value, std::string_view key) {
  const json::Value* found = json::find(value, key);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

class Reader {
 public:
  explicit Reader(MessageEvents& out) : out_(out) {}

  void frame(std::string_view name, const json::Value& event) {
    const std::string type = text_of(event, "type");
    expect(name == type, "event line '" + std::string(name) + "' with type '" + type + "'");
    expect(!ended_, type + " after the end");
    if (type == "ping") {
      ++out_.pings;
      expect(started_, "a ping before message_start");
      return;
    }
    if (out_.types.empty() || out_.types.back() != type) {
      out_.types.push_back(type);
    }
    handle(type, event);
  }

  void finish() { expect(ended_, "no message_stop and no error"); }

 private:
  void expect(bool right, const std::string& what) {
    if (!right) {
      out_.problems.push_back(what);
    }
  }

  void handle(const std::string& type, const json::Value& event) {
    if (type == "message_start") {
      start(event);
    } else if (type == "content_block_start") {
      block_start(event);
    } else if (type == "content_block_delta") {
      delta(event);
    } else if (type == "content_block_stop") {
      block_stop(event);
    } else if (type == "message_delta") {
      message_delta(event);
    } else if (type == "message_stop") {
      expect(has_stop_reason_, "message_stop without message_delta");
      ended_ = true;
    } else if (type == "error") {
      out_.error = *json::find(event, "error");
      ended_ = true;
    } else {
      expect(false, "unknown event " + type);
    }
  }

  void start(const json::Value& event) {
    expect(!started_, "message_start twice");
    started_ = true;
    out_.message = json::find(event, "message")->get_object();
    check_usage(out_.message.at("usage"));
    expect(out_.message.at("content") == json::Value(json::Array()), "content of message_start");
    expect(out_.message.at("stop_reason").is_null(), "stop_reason of message_start");
  }

  void check_usage(const json::Value& usage) {
    for (const char* key : {"input_tokens", "cache_creation_input_tokens",
                            "cache_read_input_tokens", "output_tokens"}) {
      const json::Value* value = json::find(usage, key);
      expect(value != nullptr && value->is_int64(), std::string("usage.") + key);
    }
  }

  void check_index(const json::Value& event, const std::string& type) {
    expect(json::find(event, "index") != nullptr &&
               json::find(event, "index")->to_number<std::int64_t>() == n_blocks_,
           type + ": index");
  }

  void block_start(const json::Value& event) {
    expect(started_ && !open_, "a block begins out of place");
    check_index(event, "content_block_start");
    open_ = true;
    block_ = json::find(event, "content_block")->get_object();
    text_.clear();
    signed_ = false;
  }

  void delta(const json::Value& event) {
    expect(open_, "a delta without a block");
    check_index(event, "content_block_delta");
    const json::Value& delta = *json::find(event, "delta");
    const std::string kind = text_of(delta, "type");
    const std::string block = text_of(block_, "type");
    expect(!signed_, "a delta after the signature");
    if (kind == "signature_delta") {
      expect(block == "thinking", "a signature in a block of type " + block);
      block_["signature"] = text_of(delta, "signature");
      signed_ = true;
      return;
    }
    const bool fits = (kind == "thinking_delta" && block == "thinking") ||
                      (kind == "text_delta" && block == "text") ||
                      (kind == "input_json_delta" && block == "tool_use");
    expect(fits, kind + " in a block of type " + block);
    text_ += text_of(delta, "thinking") + text_of(delta, "text") + text_of(delta, "partial_json");
  }

  void block_stop(const json::Value& event) {
    check_index(event, "content_block_stop");
    open_ = false;
    ++n_blocks_;
    const std::string type = text_of(block_, "type");
    if (type == "tool_use") {
      const Result<json::Value> input = json::parse(text_);
      if (!input.ok() || !input->is_object()) {
        return;
      }
      block_["input"] = *input;
    } else {
      expect(!text_.empty(), "an empty block of type " + type);
      block_[type] = text_;
    }
    if (started_) {
      out_.message["content"].get_array().push_back(block_);
    }
  }

  void message_delta(const json::Value& event) {
    expect(!open_, "message_delta inside a block");
    expect(!has_stop_reason_, "message_delta twice");
    has_stop_reason_ = true;
    const json::Value& delta = *json::find(event, "delta");
    out_.message["stop_reason"] = *json::find(delta, "stop_reason");
    out_.message["stop_sequence"] = *json::find(delta, "stop_sequence");
    const json::Value* usage = json::find(event, "usage");
    expect(usage != nullptr, "usage of message_delta");
    if (usage != nullptr) {
      check_usage(*usage);
      out_.message["usage"] = *usage;
    }
  }

  MessageEvents& out_;
  bool started_ = false;
  bool ended_ = false;
  bool open_ = false;
  bool signed_ = false;
  bool has_stop_reason_ = false;
  std::int64_t n_blocks_ = 0;
  json::Object block_;
  std::string text_;
};

}  // namespace

MessageEvents read_message_events(std::string_view frames) {
  MessageEvents out;
  Reader reader(out);
  while (!frames.empty()) {
    const std::size_t end = frames.find("\n\n");
    const std::string_view frame = frames.substr(0, end);
    const std::size_t line = frame.find('\n');
    if (end == std::string_view::npos || frame.substr(0, 7) != "event: " ||
        line == std::string_view::npos || frame.substr(line + 1, 6) != "data: ") {
      out.problems.push_back("no event and data line: " + std::string(frame));
      break;
    }
    reader.frame(frame.substr(7, line - 7), json::parse(frame.substr(line + 7)).value());
    frames.remove_prefix(end + 2);
  }
  reader.finish();
  return out;
}

}  // namespace tandem::testing
