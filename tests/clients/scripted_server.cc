// The real server over the obedient model: what client programs are tested against.
// usage: scripted_server PORT [STATE_DIR [no-thinking]]
// Prints "listening on PORT" once it serves, and ends when its input ends or on SIGTERM.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "foundation/obs/log.h"
#include "serving/server/server.h"
#include "tests/support/obedient_model.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/wire_tokens.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t kContext = std::int64_t{1} << 20;
constexpr std::size_t kPageTokens = 128;
constexpr const char* kModelName = "deepseek-v4-flash";

// How much of a prompt was there before, in whole pages: what a prefix cache would answer.
class Prefixes {
 public:
  std::int64_t cached(const std::vector<TokenId>& prompt) {
    const std::lock_guard lock(mutex_);
    std::size_t longest = 0;
    for (const std::vector<TokenId>& seen : seen_) {
      const auto differ =
          std::mismatch(seen.begin(), seen.end(), prompt.begin(), prompt.end()).first;
      longest = std::max(longest, static_cast<std::size_t>(differ - seen.begin()));
    }
    seen_.push_back(prompt);
    return static_cast<std::int64_t>(std::min(longest, prompt.size() - 1) / kPageTokens *
                                     kPageTokens);
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<TokenId>> seen_;
};

int serve(int argc, char** argv) {
  obs::set_log_level("warning");
  Prefixes prefixes;
  runtime::EngineLimits limits;
  limits.max_context_tokens = kContext;
  limits.max_sequences = 64;
  limits.max_waiting = 64;
  limits.vocab_size = wire_tokenizer().vocab_size();
  ScriptedEngine engine(
      [&prefixes](const runtime::GenerationRequest& request) {
        EngineScript script;
        const std::string reply = obedient_reply(wire_tokenizer().decode(request.prompt));
        script.tokens = tokens_of(reply);
        script.tokens.push_back(wire_tokenizer().special().eos);
        const std::size_t thought = reply.find("</think>");
        script.thinking_tokens =
            thought == std::string::npos ? 0 : static_cast<std::int64_t>(thought);
        script.steps = {3, 1, 7, 2};
        script.pause_us = script.tokens.size() > 2000 ? 20'000 : 0;
        script.cached_tokens = prefixes.cached(request.prompt);
        return script;
      },
      limits);
  server::ServerConfig config;
  config.port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  config.state_dir = argc > 2 ? argv[2] : "";
  protocol::ModelInfo model;
  model.name = kModelName;
  model.fingerprint = "fp_scripted";
  model.max_context_tokens = kContext;
  if (argc > 3 && std::string_view(argv[3]) == "no-thinking") {
    model.mode = text::ThinkingMode::kChat;
  }
  server::Server server(config, engine, wire_tokenizer(), model);
  const Status status = server.start();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return 1;
  }
  std::printf("listening on %d\n", static_cast<int>(server.port()));
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server.stop();
  return 0;
}

}  // namespace
}  // namespace tandem::testing

int main(int argc, char** argv) {
  return tandem::testing::serve(argc, argv);
}
