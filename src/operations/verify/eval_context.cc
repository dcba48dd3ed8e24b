// Tasks over long contexts, in the manner of RULER: the cells really have the stated length, the
// question stands last, and the depth varies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "foundation/base/random.h"
#include "operations/verify/evaluate.h"
#include "operations/verify/filler.h"

namespace tandem::verify {
namespace {

// Puts the lines at sentence borders of the filler: the first at `depth` (0 = start, 1 = end), the
// others behind it, spread over the rest.
std::string scatter(std::string filler, const std::vector<std::string>& lines, double depth) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double room = static_cast<double>(filler.size() - from);
    const double share = i == 0 ? depth : 1.0 / static_cast<double>(lines.size() - i + 1);
    std::size_t place = filler.find(". ", from + static_cast<std::size_t>(room * share));
    place = place == std::string::npos ? filler.size() : place + 2;
    filler.insert(place, lines[i]);
    from = place + lines[i].size();
  }
  return filler;
}

// What hides in the filler, the question, and what the answer must contain.
struct Puzzle {
  std::vector<std::string> lines;
  std::string question;
  std::vector<std::string> answers;
};

// The prompt of a cell, and a proof by /tokenize that it has the stated length within 3%.
Result<std::string> make_cell(ApiClient& client, const Puzzle& puzzle, std::int64_t tokens,
                              double depth) {
  std::string fixed = puzzle.question;
  for (const std::string& line : puzzle.lines) {
    fixed += line;
  }
  TANDEM_ASSIGN(const std::int64_t overhead, count_tokens(client, fixed));
  TANDEM_ASSIGN(
      const std::string filler,
      filler_of_tokens(client, std::max<std::int64_t>(1, tokens - overhead), run_nonce()));
  std::string prompt = scatter(filler, puzzle.lines, depth) + "\n" + puzzle.question;
  TANDEM_ASSIGN(const std::int64_t counted, count_tokens(client, prompt));
  if (counted < tokens * 97 / 100 || counted > tokens * 103 / 100 + 64) {
    return failed_precondition("a cell of {} tokens counts {} by /tokenize", tokens, counted);
  }
  return prompt;
}

Result<EvalScore> run_puzzles(ApiClient& client, const EvalOptions& options, std::uint64_t salt,
                              Puzzle (*make)(Random&)) {
  constexpr std::array<double, 5> kDepths = {0.0, 0.25, 0.5, 0.75, 0.95};
  EvalScore score;
  Random random(options.seed ^ salt);
  for (const std::int64_t tokens : options.context_tokens) {
    const int rounds = std::max(1, options.questions / static_cast<int>(kDepths.size()));
    for (const double depth : kDepths) {
      int right = 0;
      for (int i = 0; i < rounds; ++i) {
        const Puzzle puzzle = make(random);
        TANDEM_ASSIGN(const std::string prompt, make_cell(client, puzzle, tokens, depth));
        TANDEM_ASSIGN(const std::string answer, ask(client, prompt, 64));
        const bool good = std::all_of(
            puzzle.answers.begin(), puzzle.answers.end(),
            [&answer](const std::string& part) { return answer.find(part) != std::string::npos; });
        right += good ? 1 : 0;
        score.add(good, fmt::format("{} tokens, depth {:.2f}: {}", tokens, depth, puzzle.question),
                  fmt::format("{}", fmt::join(puzzle.answers, " ")), answer);
      }
      score.cells[fmt::format("{}@{:.2f}", tokens, depth)] = json::Array{right, rounds};
    }
  }
  return score;
}

std::string number(Random& random) {
  return std::to_string(10'000 + random.below(90'000));
}

Puzzle single_needle(Random& random) {
  const std::string code = number(random);
  return {{fmt::format("The secret code is {}. ", code)},
          "What is the secret code? Reply with the code only.",
          {code}};
}

Puzzle multi_needle(Random& random) {
  const std::vector<std::string> keys = {"red box", "blue box", "green box"};
  Puzzle puzzle;
  const std::size_t wanted = random.below(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string code = number(random);
    puzzle.lines.push_back(fmt::format("The code of the {} is {}. ", keys[i], code));
    if (i == wanted) {
      puzzle.answers = {code};
    }
  }
  puzzle.question =
      fmt::format("What is the code of the {}? Reply with the code only.", keys[wanted]);
  return puzzle;
}

Puzzle multi_value(Random& random) {
  Puzzle puzzle;
  for (int i = 0; i < 3; ++i) {
    puzzle.answers.push_back(number(random));
    puzzle.lines.push_back(
        fmt::format("One code of the copper box is {}. ", puzzle.answers.back()));
  }
  puzzle.question = "What are all three codes of the copper box? Reply with the codes only.";
  return puzzle;
}

Puzzle variable_tracking(Random& random) {
  const std::vector<std::string> names = {"ALPHA", "BRAVO", "DELTA", "ECHO"};
  const std::string value = number(random);
  Puzzle puzzle;
  puzzle.lines.push_back(fmt::format("Set {} to {}. ", names[0], value));
  for (std::size_t i = 1; i < names.size(); ++i) {
    puzzle.lines.push_back(fmt::format("Set {} to the value of {}. ", names[i], names[i - 1]));
  }
  puzzle.question =
      fmt::format("What is the value of {}? Reply with the number only.", names.back());
  puzzle.answers = {value};
  return puzzle;
}

}  // namespace

void add_context_tasks(std::vector<EvalTask>& tasks) {
  tasks.push_back({"context.needle", "One needle", [](ApiClient& c, const EvalOptions& o) {
                     return run_puzzles(c, o, 1, single_needle);
                   }});
  tasks.push_back(
      {"context.multi_needle", "One of three needles",
       [](ApiClient& c, const EvalOptions& o) { return run_puzzles(c, o, 2, multi_needle); }});
  tasks.push_back(
      {"context.multi_value", "All three needles of one key",
       [](ApiClient& c, const EvalOptions& o) { return run_puzzles(c, o, 4, multi_value); }});
  tasks.push_back(
      {"context.variables", "A chain of four variables",
       [](ApiClient& c, const EvalOptions& o) { return run_puzzles(c, o, 3, variable_tracking); }});
}

}  // namespace tandem::verify
