// Tasks over long contexts, in the manner of RULER: the cells really have the stated length, the
// question stands last, and the depth varies.
#include "foundation/base/random.h"
#include "operations/verify/evaluate.h"
#include "operations/verify/filler.h"

namespace tandem::verify {
namespace {

// Puts each line at a random sentence border of the filler, in order.
std::string scatter(Random& random, std::string filler, const std::vector<std::string>& lines) {
  std::size_t from = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t room = (filler.size() - from) / (lines.size() - i);
    std::size_t place = filler.find(". ", from + random.below(std::max<std::size_t>(room, 1)));
    place = place == std::string::npos ? filler.size() : place + 2;
    filler.insert(place, lines[i]);
    from = place + lines[i].size();
  }
  return filler;
}

// Runs `questions` cells of each length; `make` writes lines, the question and the answer.
struct Puzzle {
  std::vector<std::string> lines;
  std::string question;
  std::vector<std::string> answers;
};

Result<EvalScore> run_puzzles(ApiClient& client, const EvalOptions& options, std::uint64_t salt,
                              Puzzle (*make)(Random&)) {
  EvalScore score;
  Random random(options.seed ^ salt);
  for (const std::int64_t tokens : options.context_tokens) {
    int right = 0;
    const int cells = std::max(1, options.questions / 4);
    for (int i = 0; i < cells; ++i) {
      const Puzzle puzzle = make(random);
      TANDEM_ASSIGN(const std::string filler,
                    filler_of_tokens(client, tokens - tokens / 20, run_nonce()));
      const std::string prompt = scatter(random, filler, puzzle.lines) + "\n" + puzzle.question;
      TANDEM_ASSIGN(const std::string answer, ask(client, prompt, 64));
      bool good = true;
      std::string expected;
      for (const std::string& part : puzzle.answers) {
        good = good && answer.find(part) != std::string::npos;
        expected += part + " ";
      }
      right += good ? 1 : 0;
      score.add(good, puzzle.question, expected, answer);
    }
    score.cells[std::to_string(tokens)] = json::Array{right, cells};
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
      {"context.variables", "A chain of four variables",
       [](ApiClient& c, const EvalOptions& o) { return run_puzzles(c, o, 3, variable_tracking); }});
}

}  // namespace tandem::verify
