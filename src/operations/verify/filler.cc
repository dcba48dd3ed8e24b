#include "operations/verify/filler.h"

#include <unistd.h>

#include <array>
#include <atomic>

#include "foundation/base/clock.h"
#include "foundation/base/random.h"
#include "operations/verify/json_checks.h"

namespace tandem::verify {
namespace {

constexpr std::array<const char*, 12> kSubjects = {
    "The old miller", "A young fox",   "The quiet teacher", "My neighbour",
    "The grey cat",   "A tall sailor", "The baker",         "Her brother",
    "The gardener",   "A small bird",  "The captain",       "An honest farmer"};
constexpr std::array<const char*, 12> kVerbs = {
    "walked to",      "looked at",   "talked about", "remembered", "painted", "slept near",
    "came back from", "wrote about", "found",        "waited by",  "cleaned", "liked"};
constexpr std::array<const char*, 12> kPlaces = {"the river",       "the market", "the green hill",
                                                 "a wooden bridge", "the lake",   "the village",
                                                 "an empty house",  "the garden", "the long road",
                                                 "the old school",  "the harbor", "the forest"};

std::string sentences(Random& random, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += kSubjects[random.below(kSubjects.size())];
    out += ' ';
    out += kVerbs[random.below(kVerbs.size())];
    out += ' ';
    out += kPlaces[random.below(kPlaces.size())];
    out += ". ";
  }
  return out;
}

}  // namespace

std::string run_nonce() {
  static std::atomic<std::uint64_t> counter{0};
  const std::uint64_t mixed =
      mix64(static_cast<std::uint64_t>(system_clock().now_us()) ^
            (static_cast<std::uint64_t>(getpid()) << 40) ^ counter.fetch_add(1));
  return fmt::format("Note {:016x}. ", mixed);
}

Result<std::int64_t> count_tokens(ApiClient& client, const std::string& text) {
  const json::Array messages{json::Object{{"role", "user"}, {"content", text}}};
  TANDEM_ASSIGN(
      const ApiReply reply,
      client.post("/tokenize", {{"model", client.model()},
                                {"messages", messages},
                                {"chat_template_kwargs", json::Object{{"thinking", false}}}}));
  const auto count = int_at(reply.json, "count");
  if (!count.has_value()) {
    return failed_precondition("POST /tokenize gives no integer count: {}", reply.brief());
  }
  return *count;
}

Result<std::string> filler_of_tokens(ApiClient& client, std::int64_t tokens,
                                     const std::string& nonce) {
  std::uint64_t seed = 0;
  for (const char c : nonce) {
    seed = mix64(seed ^ static_cast<unsigned char>(c));
  }
  Random random(seed);
  std::string text = nonce;
  std::int64_t count = 0;
  while (count < tokens) {
    const std::int64_t missing = tokens - count;
    text += sentences(random, static_cast<int>(missing / 12 + 1));
    TANDEM_ASSIGN(count, count_tokens(client, text));
  }
  return text;
}

}  // namespace tandem::verify
