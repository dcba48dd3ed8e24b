#include "tests/unit/protocol/scripted_reply.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/random.h"
#include "tests/support/wire_tokens.h"

namespace tandem::testing {
std::vector<Cut> many_cuts() {
  std::vector<Cut> cuts;
  for (std::size_t size = 1; size < 10; ++size) {
    cuts.push_back({size});
  }
  cuts.push_back({1'000'000});
  Random random(7);
  for (int i = 0; i < 20; ++i) {
    Cut cut;
    for (int k = 0; k < 50; ++k) {
      cut.push_back(1 + random.below(6));
    }
    cuts.push_back(cut);
  }
  return cuts;
}

std::string stream(protocol::Reply& reply, const Script& script, const Cut& cut) {
  text::StreamDecoder decoder(wire_tokenizer(), script.options);
  const std::vector<TokenId> tokens = tokens_of(script.text);
  std::string out = reply.begin(script.usage.prompt_tokens);
  std::size_t at = 0;
  for (std::size_t step = 0; at < tokens.size(); ++step) {
    const std::size_t size = std::min(cut[step % cut.size()], tokens.size() - at);
    const auto events = decoder.feed(std::span(tokens).subspan(at, size));
    out += reply.update({0, events, {}});
    at += size;
  }
  const auto last = decoder.finish();
  out += reply.update({0, last, {}});
  const auto stop = std::find_if(last.begin(), last.end(), [](const text::StreamEvent& event) {
    return event.kind == text::StreamEvent::Kind::kStop;
  });
  protocol::ChoiceEnd end;
  end.reason = script.reason;
  end.usage = script.usage;
  if (decoder.stopped() && !script.options.stop.empty()) {
    end.stop = stop == last.end() ? script.options.stop.front() : stop->text;
  }
  out += reply.end_choice(end);
  out += reply.finish();
  return out;
}

json::Value whole(protocol::Reply& reply, const Script& script) {
  stream(reply, script, {3});
  return reply.body();
}

std::string dsml_string(std::string_view name, std::string_view value) {
  return fmt::format("<｜DSML｜parameter name=\"{}\" string=\"true\">{}</｜DSML｜parameter>\n",
                     name, value);
}

std::string dsml_call(std::string_view name, std::string_view parameters) {
  return fmt::format("<｜DSML｜invoke name=\"{}\">\n{}</｜DSML｜invoke>\n", name, parameters);
}

std::string dsml_block(std::string_view calls) {
  return fmt::format("\n\n<｜DSML｜tool_calls>\n{}</｜DSML｜tool_calls>", calls);
}

}  // namespace tandem::testing
