#include "apps/tandem/chat_verb.h"

#include <editline/readline.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/tandem/chat_session.h"

namespace tandem::apps {
namespace {

constexpr const char* kHelp =
    "/help            this list\n"
    "/new             start a new conversation\n"
    "/system TEXT     set the system message (and start anew)\n"
    "/think on|off    let the model think first, or answer at once\n"
    "/save FILE       write the conversation as JSON\n"
    "/exit            leave (Ctrl-D too); Ctrl-C stops an answer\n";

std::atomic<bool> stop_requested{false};

void on_interrupt(int) {
  stop_requested = true;
}

class Terminal {
 public:
  Terminal() : colour_(isatty(STDOUT_FILENO) == 1) {}

  void show(const ChatPiece& piece) {
    if (piece.is_thinking != thinking_) {
      std::fputs(thinking_ ? reset() : dim(), stdout);
      if (thinking_) {
        std::fputs("\n", stdout);
      }
      thinking_ = piece.is_thinking;
    }
    std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    std::fflush(stdout);
  }

  void end_of_answer() {
    std::fputs(thinking_ ? reset() : "", stdout);
    std::fputs("\n", stdout);
    thinking_ = false;
  }

  void note(const std::string& text) {
    std::printf("%s%s%s\n", dim(), text.c_str(), reset());
    std::fflush(stdout);
  }

 private:
  const char* dim() const { return colour_ ? "\033[2m" : ""; }

  const char* reset() const { return colour_ ? "\033[0m" : ""; }

  bool colour_;
  bool thinking_ = false;
};

std::string summary_line(const TurnSummary& summary) {
  const double decoding = summary.seconds - summary.seconds_to_first;
  const double rate =
      decoding > 0 ? static_cast<double>(summary.completion_tokens - 1) / decoding : 0;
  return fmt::format(
      "[{} prompt tokens, {} of them cached; {} tokens, first after {:.2f} s, then {:.1f} "
      "tokens/s; "
      "{}]",
      summary.prompt_tokens, summary.cached_tokens, summary.completion_tokens,
      summary.seconds_to_first, rate, summary.finish_reason);
}

// Asks once and prints the answer. Returns the exit code.
int run_turn(ChatSession& session, Terminal& terminal, const std::string& text) {
  stop_requested = false;
  const auto result = session.ask(
      text, [&terminal](const ChatPiece& piece) { terminal.show(piece); }, stop_requested);
  terminal.end_of_answer();
  if (!result.ok()) {
    std::fprintf(stderr, "tandem chat: %s\n", result.status().message().c_str());
    return 1;
  }
  terminal.note(summary_line(*result));
  return 0;
}

void run_command(ChatSession& session, Terminal& terminal, const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "/help") {
    std::fputs(kHelp, stdout);
  } else if (word == "/new") {
    session.clear();
    terminal.note("new conversation");
  } else if (word == "/system") {
    session.options().system = rest;
    session.clear();
    terminal.note("system message set; new conversation");
  } else if (word == "/think" && (rest == "on" || rest == "off")) {
    session.options().thinking = rest == "on";
    terminal.note("thinking " + rest);
  } else if (word == "/save" && !rest.empty()) {
    std::ofstream file(rest);
    file << json::dump(session.messages()) << "\n";
    terminal.note(file ? "saved to " + rest : "cannot write " + rest);
  } else {
    terminal.note("unknown command " + word + "; /help lists them");
  }
}

std::filesystem::path history_file() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::filesystem::path(home) / ".local/state/tandem/chat_history";
}

int run_loop(ChatSession& session, Terminal& terminal) {
  const std::filesystem::path history = history_file();
  if (!history.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(history.parent_path(), ignored);
    read_history(history.c_str());
  }
  while (true) {
    const std::unique_ptr<char, decltype(&std::free)> typed(readline("> "), std::free);
    if (typed == nullptr) {
      std::fputs("\n", stdout);
      return 0;
    }
    const std::string line = typed.get();
    if (line.find_first_not_of(" \t") == std::string::npos) {
      continue;
    }
    add_history(line.c_str());
    if (!history.empty()) {
      write_history(history.c_str());
    }
    if (line == "/exit" || line == "/quit") {
      return 0;
    }
    if (line.front() == '/') {
      run_command(session, terminal, line);
    } else {
      run_turn(session, terminal, line);
    }
  }
}

struct ChatFlags {
  std::string url = "http://127.0.0.1:8000";
  std::string once;
  bool no_thinking = false;
  ChatOptions options;
};

int run_chat(const ChatFlags& flags) {
  const auto url = net::parse_url(flags.url);
  if (!url.ok()) {
    std::fprintf(stderr, "tandem chat: --url: %s\n", url.status().message().c_str());
    return 2;
  }
  ChatOptions options = flags.options;
  options.url = *url;
  options.thinking = !flags.no_thinking;
  ChatSession session(options);
  const Status connected = session.connect();
  if (!connected.ok()) {
    std::fprintf(stderr, "tandem chat: %s\n", connected.message().c_str());
    return 1;
  }
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  Terminal terminal;
  if (!flags.once.empty()) {
    return run_turn(session, terminal, flags.once);
  }
  terminal.note(session.options().model + " at " + flags.url + "; /help lists the commands");
  return run_loop(session, terminal);
}

}  // namespace

void add_chat_verb(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ChatFlags>();
  CLI::App* verb = app.add_subcommand("chat", "talk to a running server in the terminal");
  verb->add_option("--url", flags->url, "server address")->capture_default_str();
  verb->add_option("--model", flags->options.model, "model name; default: the server's first");
  verb->add_option("--api-key", flags->options.api_key, "key, if the server wants one");
  verb->add_option("--system", flags->options.system, "system message");
  verb->add_option("--max-tokens", flags->options.max_tokens, "longest answer");
  verb->add_option("--once", flags->once, "send this one message, print the answer, leave");
  verb->add_flag("--no-thinking", flags->no_thinking, "answer at once");
  verb->callback([flags, &exit_code] { exit_code = run_chat(*flags); });
}

}  // namespace tandem::apps
