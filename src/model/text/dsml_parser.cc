#include "model/text/dsml_parser.h"

#include <utility>

#include "foundation/json/json.h"
#include "model/text/utf8.h"

namespace tandem::text {
namespace {

constexpr std::size_t kMaxOpeningBytes = 8192;
constexpr std::size_t kMaxReportBytes = 1024;
constexpr std::size_t kMaxCloserBytes = 64;
constexpr std::string_view kCloser = "</\xFFparameter";

// A text as a JSON string.
std::string json_string(std::string_view text) {
  return json::dump_python(json::Value(json::String(text)));
}

// The same without the quotes: a part of a JSON string.
std::string json_string_part(std::string_view text) {
  const std::string whole = json_string(text);
  return whole.substr(1, whole.size() - 2);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool could_be_tag_name(std::string_view name) {
  for (const std::string_view known : {"tool_calls", "invoke", "parameter"}) {
    if (known.substr(0, name.size()) == name) {
      return true;
    }
  }
  return false;
}

StreamEvent call_event(StreamEvent::Kind kind, int index) {
  StreamEvent event;
  event.kind = kind;
  event.index = index;
  return event;
}

}  // namespace

DsmlParser::DsmlParser(const StreamOptions& options, StreamEvents& events)
    : options_(options),
      events_(events),
      in_reasoning_(options.starts_in_reasoning),
      open_think_(options.starts_in_reasoning) {}

void DsmlParser::put(char c) {
  if (events_.stopped()) {
    return;
  }
  switch (place_) {
    case Place::kText:
      put_text(c);
      break;
    case Place::kOpening:
      put_opening(c);
      break;
    case Place::kBlock:
      put_block(c);
      break;
    case Place::kCall:
      put_call(c);
      break;
    case Place::kValue:
      put_value(c);
      break;
  }
}

StreamChannel DsmlParser::channel() const {
  if (place_ != Place::kText) {
    return StreamChannel::kToolCall;
  }
  return in_reasoning_ ? StreamChannel::kReasoning : StreamChannel::kContent;
}

// ---- kText

void DsmlParser::emit(char c) {
  any_text_ = any_text_ || !is_blank(c);
  if (in_reasoning_) {
    events_.reasoning(std::string_view(&c, 1));
  } else {
    events_.content(c);
  }
}

void DsmlParser::emit_all(std::string_view text) {
  for (const char c : text) {
    emit(c);
  }
}

void DsmlParser::put_text(char c) {
  if (skip_blanks_ && is_blank(c)) {
    return;
  }
  skip_blanks_ = false;
  if (c == kThinkEndMark || c == kThinkBeginMark) {
    put_think_mark(c);
  } else if (c == kDsmlMark) {
    const bool after_bracket = !held_.empty() && (held_.back() == '<' || held_.back() == '/');
    if (after_bracket) {
      start_opening(c);
    } else {
      emit_all(std::exchange(held_, {}));
      emit_all(spell_marks(std::string_view(&c, 1)));
    }
  } else {
    hold_or_emit(c);
  }
}

// </think> ends the reasoning, or comes late for one that a tool block has ended. A mark at the
// very start of a reply or of its content is dropped (the prompt has one); a later one is text.
void DsmlParser::put_think_mark(char c) {
  emit_all(std::exchange(held_, {}));
  if (c == kThinkEndMark && std::exchange(open_think_, false)) {
    any_text_ = any_text_ && !in_reasoning_;
    in_reasoning_ = false;
  } else if (any_text_ || n_calls_ > 0) {
    emit_all(spell_marks(std::string_view(&c, 1)));
  } else if (c == kThinkBeginMark) {
    in_reasoning_ = true;
    open_think_ = true;
  }
}

// Keeps the longest end of the text that a tool block could follow: up to two line ends, then "<"
// or "</".
void DsmlParser::hold_or_emit(char c) {
  if (!options_.parse_tools) {
    emit(c);
    return;
  }
  const bool open = !held_.empty() && held_.back() == '<';
  if (open && c == '/') {
    held_ += c;
    return;
  }
  const bool bracket = open || (!held_.empty() && held_.back() == '/');
  if (bracket || (c != '\n' && c != '<')) {
    emit_all(std::exchange(held_, {}));
  }
  if (c == '\n' && held_.size() == 2) {
    emit('\n');
  } else if (c == '\n' || c == '<') {
    held_ += c;
  } else {
    emit(c);
  }
}

// ---- kOpening

void DsmlParser::start_opening(char c) {
  const std::size_t bracket = held_.find('<');
  separator_ = held_.substr(0, bracket);
  opening_ = held_.substr(bracket);
  held_.clear();
  has_wrapper_ = false;
  tag_.reset();
  for (const char read : opening_) {
    tag_.feed(read);
  }
  place_ = Place::kOpening;
  put_opening(c);
}

void DsmlParser::put_opening(char c) {
  opening_ += c;
  if (opening_.size() > kMaxOpeningBytes) {
    fail_opening();
    return;
  }
  if (tag_.empty() && is_blank(c)) {
    return;
  }
  const DsmlTagLexer::State state = tag_.feed(c);
  if (state == DsmlTagLexer::State::kDone) {
    opening_tag();
  } else if (state == DsmlTagLexer::State::kBad || !could_be_tag_name(tag_.name())) {
    fail_opening();
  }
}

void DsmlParser::opening_tag() {
  const std::string* name = tag_.attribute("name");
  const bool opens_call = tag_.name() == "invoke" && !tag_.closing() && name != nullptr &&
                          !name->empty() && (has_wrapper_ || options_.tool_names.count(*name) > 0);
  if (opens_call) {
    begin_call(*name);
  } else if (tag_.name() == "tool_calls" && !tag_.closing() && !has_wrapper_) {
    has_wrapper_ = true;
    tag_.reset();
  } else if (tag_.closing() && (has_wrapper_ || n_calls_ > 0)) {
    // An empty block, or a closing tag that was left over from an earlier one.
    report(opening_);
    leave_block();
  } else {
    fail_opening();
  }
}

// It was no tool block: everything since "<" is text, and a block may begin inside of it.
void DsmlParser::fail_opening() {
  if (has_wrapper_) {
    report(opening_);
  }
  const std::string read = std::exchange(opening_, {});
  const std::size_t after_mark = read.find(kDsmlMark) + 1;
  place_ = Place::kText;
  emit_all(std::exchange(separator_, {}));
  emit_all(spell_marks(std::string_view(read).substr(0, after_mark)));
  for (const char c : std::string_view(read).substr(after_mark)) {
    put(c);
  }
}

// ---- kBlock

void DsmlParser::put_block(char c) {
  if (tag_.empty() && is_blank(c)) {
    return;
  }
  const DsmlTagLexer::State state = tag_.feed(c);
  if (state == DsmlTagLexer::State::kMore) {
    return;
  }
  const std::string* name = tag_.attribute("name");
  if (state == DsmlTagLexer::State::kDone && tag_.name() == "invoke" && !tag_.closing() &&
      name != nullptr && !name->empty()) {
    begin_call(*name);
    return;
  }
  if (state == DsmlTagLexer::State::kDone && tag_.name() == "tool_calls" && tag_.closing()) {
    leave_block();
    return;
  }
  // Something else follows: the block is over without its closing tag.
  const std::string read = tag_.raw();
  leave_block();
  for (const char again : read) {
    put(again);
  }
}

void DsmlParser::leave_block() {
  place_ = Place::kText;
  skip_blanks_ = true;
  tag_.reset();
}

// ---- kCall

void DsmlParser::begin_call(const std::string& name) {
  in_reasoning_ = false;
  events_.flush_content();
  tool_ = name;
  first_parameter_ = true;
  seen_.clear();
  StreamEvent event = call_event(StreamEvent::Kind::kToolCallBegin, n_calls_);
  event.id = fmt::format("{}{}", options_.call_id_prefix, n_calls_);
  event.name = name;
  events_.event(std::move(event));
  ++n_calls_;
  place_ = Place::kCall;
  opening_.clear();
  separator_.clear();
  tag_.reset();
}

void DsmlParser::end_call() {
  events_.arguments(n_calls_ - 1, first_parameter_ ? "{}" : "}");
  events_.event(call_event(StreamEvent::Kind::kToolCallEnd, n_calls_ - 1));
  place_ = Place::kBlock;
}

void DsmlParser::put_call(char c) {
  if (tag_.empty() && c != '<') {
    if (!is_blank(c)) {
      add_junk(std::string_view(&c, 1));
    }
    return;
  }
  const DsmlTagLexer::State state = tag_.feed(c);
  if (state == DsmlTagLexer::State::kMore) {
    return;
  }
  const bool used = state == DsmlTagLexer::State::kDone && call_tag();
  const std::string read = tag_.raw();
  tag_.reset();
  if (!used) {
    const bool begins_next = c == '<';  // what broke this tag
    add_junk(std::string_view(read).substr(0, read.size() - (begins_next ? 1 : 0)));
    if (begins_next) {
      tag_.feed(c);
    }
  }
  if (place_ != Place::kCall) {
    report_junk();
  }
}

// Whether the tag belongs here.
bool DsmlParser::call_tag() {
  const std::string* name = tag_.attribute("name");
  if (tag_.name() == "parameter" && !tag_.closing() && name != nullptr) {
    begin_value();
    return true;
  }
  if (tag_.name() == "invoke" && tag_.closing()) {
    end_call();
    return true;
  }
  // The closing tag of the call is missing: the next call or the end of the block closes it.
  if (tag_.name() == "tool_calls" && tag_.closing()) {
    add_junk(tag_.raw());
    end_call();
    leave_block();
    return true;
  }
  if (tag_.name() == "invoke" && name != nullptr && !name->empty()) {
    add_junk(tag_.raw());
    const std::string next = *name;
    end_call();
    begin_call(next);
    report_junk();
    return true;
  }
  return false;
}

// ---- kValue

void DsmlParser::begin_value() {
  key_ = *tag_.attribute("name");
  const std::string* string = tag_.attribute("string");
  place_ = Place::kValue;
  value_.clear();
  closer_.clear();
  if (!seen_.insert(key_).second) {
    mode_ = ValueMode::kSkip;
    report(tag_.raw());
    return;
  }
  mode_ = string != nullptr && *string == "true" ? ValueMode::kString : ValueMode::kJson;
  if (mode_ == ValueMode::kString) {
    next_parameter();
    events_.arguments(n_calls_ - 1, "\"");
  }
}

void DsmlParser::next_parameter() {
  events_.arguments(n_calls_ - 1, (first_parameter_ ? "{" : ", ") + json_string(key_) + ": ");
  first_parameter_ = false;
}

// "</｜DSML｜parameter", blanks, ">" ends the value; whatever only looks like it belongs to it.
void DsmlParser::put_value(char c) {
  const std::size_t n = closer_.size();
  const bool goes_on = n < kCloser.size() ? c == kCloser[n] : is_blank(c) && n < kMaxCloserBytes;
  if (goes_on) {
    closer_ += c;
    return;
  }
  if (n >= kCloser.size() && c == '>') {
    end_value();
    return;
  }
  value_text(spell_marks(std::exchange(closer_, {})));
  if (c == kCloser[0]) {
    closer_ = c;
  } else {
    value_text(is_mark(c) ? spell_marks(std::string_view(&c, 1)) : std::string(1, c));
  }
}

void DsmlParser::value_text(std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (mode_ == ValueMode::kString) {
    events_.arguments(n_calls_ - 1, json_string_part(text));
  } else if (mode_ == ValueMode::kJson) {
    value_ += text;
  }
}

// A value that is no JSON, or whose schema wants a string, is sent as a string.
void DsmlParser::end_value() {
  if (mode_ == ValueMode::kString) {
    events_.arguments(n_calls_ - 1, "\"");
  } else if (mode_ == ValueMode::kJson) {
    const bool wants_string = options_.string_parameters.count({tool_, key_}) > 0;
    const Result<json::Value> parsed = json::parse(trimmed(value_));
    const bool is_json = parsed.ok() && (!wants_string || parsed->is_string());
    next_parameter();
    events_.arguments(n_calls_ - 1, is_json ? std::string(trimmed(value_)) : json_string(value_));
  }
  value_.clear();
  closer_.clear();
  place_ = Place::kCall;
}

// ---- the end

void DsmlParser::report(std::string_view raw) {
  if (events_.stopped()) {
    return;
  }
  StreamEvent event = call_event(StreamEvent::Kind::kMalformed, 0);
  event.text = replace_invalid_utf8(spell_marks(raw.substr(0, kMaxReportBytes)));
  events_.event(std::move(event));
}

void DsmlParser::add_junk(std::string_view raw) {
  if (junk_.size() < kMaxReportBytes) {
    junk_ += raw;
  }
}

void DsmlParser::report_junk() {
  if (!junk_.empty()) {
    report(std::exchange(junk_, {}));
  }
}

void DsmlParser::end() {
  switch (place_) {
    case Place::kText:
      emit_all(std::exchange(held_, {}));
      break;
    case Place::kOpening:
      report(opening_);
      break;
    case Place::kBlock:
      if (!tag_.empty()) {
        report(tag_.raw());
      }
      break;
    case Place::kCall:
    case Place::kValue: {
      report_junk();
      StreamEvent event = call_event(StreamEvent::Kind::kToolCallEnd, n_calls_ - 1);
      event.truncated = true;
      events_.event(std::move(event));
      break;
    }
  }
  place_ = Place::kText;
  events_.flush_content();
}

}  // namespace tandem::text
