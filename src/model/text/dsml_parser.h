// DSML parser: a state machine over the characters of a reply, marks included (see dsml_tag.h).
// SOURCE: model.md 5.4, T37-T43. It separates reasoning, content and tool calls and rebuilds the
// arguments as JSON text that only ever grows.
//
//   kText     reasoning or content; "\n\n<" waits, since a tool block may begin there
//   kOpening  from "<｜DSML｜" to the end of the first <invoke>; anything else makes it text again
//   kBlock    between two calls; anything but a tag ends the block
//   kCall     between two parameters
//   kValue    inside a parameter, up to </｜DSML｜parameter>
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "model/text/dsml_tag.h"
#include "model/text/stream_events.h"

namespace tandem::text {

class DsmlParser {
 public:
  DsmlParser(const StreamOptions& options, StreamEvents& events);

  // Takes one byte of valid UTF-8, or one mark.
  void put(char c);

  // The reply is over.
  void end();

  StreamChannel channel() const;

  int n_calls() const { return n_calls_; }

 private:
  enum class Place { kText, kOpening, kBlock, kCall, kValue };

  void put_text(char c);
  void put_think_mark(char c);
  void hold_or_emit(char c);
  void emit(char c);
  void emit_all(std::string_view text);

  void start_opening(char c);
  void put_opening(char c);
  void opening_tag();
  void fail_opening();

  void put_block(char c);
  void leave_block();
  void put_call(char c);
  bool call_tag();

  void begin_call(const std::string& name);
  void end_call();
  void begin_value();
  void put_value(char c);
  void value_text(std::string_view text);
  void end_value();
  void next_parameter();

  void report(std::string_view raw);
  void add_junk(std::string_view raw);
  void report_junk();

  const StreamOptions& options_;
  StreamEvents& events_;
  Place place_ = Place::kText;
  bool in_reasoning_;
  bool open_think_;           // a <think> still lacks its </think>
  bool any_text_ = false;     // something but blanks was seen since the start or </think>
  bool skip_blanks_ = false;  // after a block: blanks are no content
  std::string held_;          // kText: up to two line ends and "<" or "</"
  std::string separator_;     // kOpening: the line ends before the block
  std::string opening_;       // kOpening: everything since "<"
  bool has_wrapper_ = false;  // kOpening: <tool_calls> was read
  DsmlTagLexer tag_;
  std::string junk_;  // kCall: what stands where it should not

  int n_calls_ = 0;
  std::string tool_;
  bool first_parameter_ = true;
  std::set<std::string> seen_;

  enum class ValueMode { kString, kJson, kSkip };
  ValueMode mode_ = ValueMode::kString;
  std::string key_;
  std::string value_;   // kJson: the whole value; kSkip: not kept
  std::string closer_;  // the part of </｜DSML｜parameter> read until now
};

}  // namespace tandem::text
